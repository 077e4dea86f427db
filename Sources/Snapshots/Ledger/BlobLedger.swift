public import IPLD

/// Which blobs are referred to, listed, held, missing and why.
///
/// Each blob is entered once, by ``hold(_:_:isReferenced:)`` or ``miss(_:)``, and every figure
/// follows from that. Where no list of them is kept, ``Counts`` counts many at once, by methods of
/// the same names. Whether a blob is held is what the archive's index says; the pages hold what
/// cannot be known otherwise, the reasons. A blob without an entry on them was simply not among the
/// files given, as all of them are when a CAR is packed alone.
public struct BlobLedger: Sendable {
  /// The figures.
  package var counts = Counts()
  /// The blobs that are held though no record refers to them.
  package var extras: [CID] = []
  /// The blobs that are missing.
  package var missing: MissingList = []

  /// A ledger without an entry.
  package init() {}

  /// A ledger of missing blobs, and of none that is held.
  package init(missing: some Sequence<Missing>) { for entry in missing { miss(entry) } }

  /// A ledger that holds what an earlier one held, and misses nothing.
  package init(holding counts: Counts, extras: [CID]) {
    (self.counts, self.extras) = (counts, extras)
    self.counts.referenced = counts.held
    (self.counts.listedMissing, self.counts.accepted) = (0, 0)
  }

  /// Enters a blob that is held, this many bytes of it.
  package mutating func hold(_ cid: CID, _ length: UInt64, isReferenced: Bool) {
    counts.hold(1, length, isReferenced: isReferenced)
    if !isReferenced { extras.append(cid) }
  }

  /// Enters a blob that is missing.
  package mutating func miss(_ entry: Missing) {
    counts.miss(1, accepted: entry.accepted == nil ? 0 : 1, isReferenced: entry.isReferenced)
    missing.append(entry)
  }

  /// Accepts the loss of missing blobs, or revokes that.
  ///
  /// Earlier acceptances keep their time and reason.
  ///
  /// - Parameters:
  ///   - acceptance: when and why; nil to take it back.
  ///   - isChosen: whether it is about a blob.
  /// - Returns: the entries that changed.
  package mutating func accept(_ acceptance: Acceptance?, of isChosen: (Missing) -> Bool)
    -> [Missing]
  {
    var (entries, changed): (MissingList, [Missing]) = ([], [])
    for var entry in missing {
      if (entry.accepted == nil) != (acceptance == nil), isChosen(entry) {
        entry.accepted = acceptance
        changed.append(entry)
      }
      entries.append(entry)
    }
    missing = entries
    counts.accepted += acceptance == nil ? -changed.count : changed.count
    return changed
  }

  /// The longest blob that a download keeps in memory, in bytes.
  package static let largeBlob = 4 << 20

  /// The blobs in figures.
  public struct Counts: Equatable, Sendable {
    /// Blobs that records refer to.
    public var referenced = 0
    /// Of these, those that the archive holds.
    public var held = 0
    /// The bytes of these.
    public var heldBytes: UInt64 = 0
    /// Blobs that the archive holds though no record refers to them.
    public var extras = 0
    /// The bytes of these.
    package var extrasBytes: UInt64 = 0
    /// Blobs that the server lists; nil if the list was not requested or not received.
    public var listed: Int?
    /// Of these, those that no record refers to and the archive does not hold.
    public var listedMissing = 0
    /// Those of the missing ones, referenced or listed, whose loss is accepted.
    public var accepted = 0
    /// Why the server's list is incomplete; nil if it is complete, or was not requested.
    package var listFault: ListFault?
    /// Blobs that came into the archive with this snapshot; nil if they were not counted.
    package var new: Int?
    /// The bytes of these.
    package var newBytes: UInt64?
    /// Blobs that records refer to and the archive does not hold.
    public var missing: Int { referenced - held }
    /// Whether nothing that is referred to or listed is missing, and all that is listed is known.
    public var isComplete: Bool { missing == 0 && listedMissing == 0 && listFault == nil }
    /// Blobs that are missing, referenced or listed, and whose loss is not accepted.
    package var unaccepted: Int { max(0, missing + listedMissing - accepted) }
    /// Whether nothing is missing except what is accepted as lost.
    package var isSettled: Bool { unaccepted == 0 && listFault == nil }

    /// No blobs.
    package init() {}

    /// Counts blobs that are held, this many bytes of them together.
    package mutating func hold(_ count: Int, _ byteCount: UInt64, isReferenced: Bool) {
      if isReferenced {
        referenced += count
        held += count
        heldBytes += byteCount
      } else {
        extras += count
        extrasBytes += byteCount
      }
    }

    /// Counts blobs that are missing, the loss of this many of which is accepted.
    package mutating func miss(_ count: Int, accepted: Int = 0, isReferenced: Bool) {
      if isReferenced { referenced += count } else { listedMissing += count }
      self.accepted += accepted
    }

    /// Counts a blob that came into the archive with this snapshot.
    package mutating func receive(_ byteCount: UInt64) {
      new = (new ?? 0) + 1
      newBytes = (newBytes ?? 0) + byteCount
    }

    /// Drops the figures of the blobs that records refer to, or of the extras, which are counted
    /// again.
    package mutating func recount(isReferenced: Bool) {
      if isReferenced {
        (referenced, held, heldBytes) = (0, 0, 0)
      } else {
        (extras, extrasBytes) = (0, 0)
      }
    }
  }

  /// Why a blob is not held.
  public struct Reason: RawRepresentable, Hashable, Sendable {
    /// The word in the file.
    public let rawValue: String

    /// A reason by its word, known or not.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// No file had its content; a missing entry means the same.
    package static let notProvided = Reason(rawValue: "not-provided")
    /// The content offered for it did not match its CID.
    package static let mismatch = Reason(rawValue: "mismatch")
    /// It was in an archive, and was lost when that was damaged.
    package static let lost = Reason(rawValue: "lost")

    /// The server says that it does not have it.
    package static let notFound = Reason(rawValue: "not-found")
    /// The server refuses to send it.
    package static let refused = Reason(rawValue: "refused")
    /// The server failed at every request.
    package static let serverError = Reason(rawValue: "server-error")
    /// The server kept answering 429 Too Many Requests.
    package static let rateLimited = Reason(rawValue: "rate-limited")
    /// No complete answer arrived: the connection failed, stalled or was cut off each time.
    package static let noAnswer = Reason(rawValue: "no-answer")
    /// The server redirected to a forbidden address.
    package static let hostileRedirect = Reason(rawValue: "hostile-redirect")
    /// The server's answer had no end, or was longer than a blob may be.
    package static let tooLarge = Reason(rawValue: "too-large")
    /// Its CID has a hash function that cannot be checked, so that nothing can be accepted for it.
    package static let unverifiable = Reason(rawValue: "unverifiable")
    /// There was no room for it on the disk.
    package static let noRoom = Reason(rawValue: "no-room")
    /// The server's answer is not a list of blobs.
    package static let malformed = Reason(rawValue: "malformed")
    /// It had not been requested when the backup was interrupted.
    package static let notTried = Reason(rawValue: "not-tried")

    /// The message for people.
    public var sentence: String {
      switch self {
      case .notFound: "the server does not have it"
      case .refused: "the server refuses to give it out"
      case .serverError: "the server failed at every attempt"
      case .rateLimited: "the server kept answering 429 Too Many Requests"
      case .noAnswer: "no complete answer arrived"
      case .hostileRedirect: "the server redirected to a refused address"
      case .tooLarge: "it is longer than a blob may be (--max-blob)"
      case .unverifiable: "its hash function is unknown, so no content can be accepted"
      case .noRoom: "there was no room for it on the disk"
      case .malformed: "the server's answer is malformed"
      case .notTried: "not requested yet"
      case .notProvided: "not among the files given"
      case .mismatch: "the content offered for it did not match"
      case .lost: "lost in damage to an archive that held it"
      default: rawValue
      }
    }
  }

  /// A blob that is referred to or listed, and not held.
  public struct Missing: Hashable, Sendable {
    /// The blob.
    public var cid: CID
    /// Why.
    public var reason: Reason
    /// Its length, as the record says.
    public var size: Int?
    /// The HTTP status that a server answered with last.
    public var status: Int?
    /// When it was first requested without success, in RFC 3339 and UTC.
    package var firstTried: String?
    /// When it was last requested without success.
    package var lastTried: String?
    /// Whether some record refers to it; if none does, a server lists it.
    public var isReferenced = true
    /// The acceptance of its loss by the archive's owner; nil if it is not accepted.
    public var accepted: Acceptance?

    /// An entry of these parts.
    package init(cid: CID, reason: Reason, size: Int?) {
      (self.cid, self.reason, self.size) = (cid, reason, size)
    }
  }

  /// The acceptance of a blob's loss: it is not requested again, and does not make a backup
  /// incomplete.
  public struct Acceptance: Hashable, Sendable {
    /// When, in RFC 3339 and UTC.
    public var date: String
    /// Why; nil if no reason was given.
    public var reason: String?

    /// An acceptance of these parts.
    package init(date: String, reason: String?) { (self.date, self.reason) = (date, reason) }

    /// The longest reason that is accepted, in bytes.
    package static let maximumReason = 500
  }
}
