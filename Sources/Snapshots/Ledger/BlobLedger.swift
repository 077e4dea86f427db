package import IPLD

/// Which blobs are referred to, listed, held, missing and why.
///
/// Whether a blob is held is what the archive's index says; the ledger holds what cannot be known
/// otherwise, the reasons. A blob without an entry was simply not among the files given, as all of
/// them are when a CAR is packed alone.
package enum BlobLedger {
  /// The longest blob that a download keeps in memory, in bytes.
  package static let largeBlob = 4 << 20

  /// Why a blob is not held.
  package struct Reason: RawRepresentable, Hashable, Sendable {
    /// The word that is written.
    package let rawValue: String

    /// A reason by its word, known or not.
    package init(rawValue: String) { self.rawValue = rawValue }

    /// No file had its content; this is what the absence of an entry says.
    package static let notProvided = Reason(rawValue: "not-provided")
    /// Content was offered under its CID that was something else.
    package static let mismatch = Reason(rawValue: "mismatch")
    /// It was in an archive, and was lost with damage to that.
    package static let lost = Reason(rawValue: "lost")

    /// The server says that it does not have it.
    package static let notFound = Reason(rawValue: "not-found")
    /// The server refuses to give it out.
    package static let refused = Reason(rawValue: "refused")
    /// The server failed each time it was asked.
    package static let serverError = Reason(rawValue: "server-error")
    /// The server answered with too many requests for as long as it was asked.
    package static let rateLimited = Reason(rawValue: "rate-limited")
    /// No whole answer came: the connection failed, stalled or was cut off each time.
    package static let noAnswer = Reason(rawValue: "no-answer")
    /// The server sent it on to where nobody should be sent.
    package static let hostileRedirect = Reason(rawValue: "hostile-redirect")
    /// What the server sent had no end, or was longer than a blob may be.
    package static let tooLarge = Reason(rawValue: "too-large")
    /// Its CID has a hash function that cannot be checked, so that nothing can be accepted for it.
    package static let unverifiable = Reason(rawValue: "unverifiable")
    /// There was no room for it on the disk.
    package static let noRoom = Reason(rawValue: "no-room")
    /// The server answered something that is not what was asked for; said of a list of blobs.
    package static let malformed = Reason(rawValue: "malformed")
    /// It had not been asked for when the backup was interrupted.
    package static let notTried = Reason(rawValue: "not-tried")

    /// What a person reads.
    package var sentence: String {
      switch self {
      case .notFound: "the server does not have it"
      case .refused: "the server refuses to give it out"
      case .serverError: "the server failed each time it was asked"
      case .rateLimited: "the server answered too many requests, each time"
      case .noAnswer: "no whole answer came"
      case .hostileRedirect: "the server pointed to an address that is not followed"
      case .tooLarge: "it is longer than a blob may be (--max-blob)"
      case .unverifiable: "its hash function is not known here, so nothing can be accepted for it"
      case .noRoom: "there was no room for it on the disk"
      case .malformed: "the server's answer is not what it should be"
      case .notTried: "not asked for yet"
      case .notProvided: "not among the files given"
      case .mismatch: "the content offered for it was something else"
      case .lost: "lost with damage to an archive that held it"
      default: rawValue
      }
    }
  }

  /// A blob that is referred to or listed, and not held.
  package struct Missing: Equatable, Sendable {
    /// The blob.
    package var cid: CID
    /// Why.
    package var reason: Reason
    /// Its length, as the record says.
    package var size: Int?
    /// The HTTP status that a server answered with last.
    package var status: Int?
    /// When it was first asked for in vain, in RFC 3339 and UTC.
    package var firstTried: String?
    /// When it was last asked for in vain.
    package var lastTried: String?
    /// Whether some record refers to it; if none does, a server lists it.
    package var isReferenced = true
    /// That the archive's owner has accepted its loss; nil if not.
    package var accepted: Acceptance?

    /// An entry of these parts.
    package init(cid: CID, reason: Reason, size: Int?) {
      self.cid = cid
      self.reason = reason
      self.size = size
    }
  }

  /// That a blob is accepted as lost: it is not asked for again, and is no reason to call a backup
  /// incomplete.
  package struct Acceptance: Hashable, Sendable {
    /// When, in RFC 3339 and UTC.
    package var date: String
    /// Why; nil if nobody said.
    package var reason: String?

    /// An acceptance of these parts.
    package init(date: String, reason: String?) {
      self.date = date
      self.reason = reason
    }

    /// The longest reason that is taken, in bytes.
    package static let maximumReason = 500
  }

  /// How many entries a page holds: about 120 bytes each, so that pages stay far below 1 MiB.
  package static let entriesPerPage = 4096

  /// The longest page that is written, in bytes (FORMAT 6.2).
  private static let maximumPage = 1 << 20

  /// Pages that list missing blobs.
  package static func pages(missing: some RandomAccessCollection<Missing>) throws -> [Block] {
    var pages: [Block] = []
    try forEachPage(of: missing) { pages.append($0) }
    return pages
  }

  /// Pages that list missing blobs, one after the other: all of them may be a hundred megabytes.
  package static func forEachPage(
    of missing: some RandomAccessCollection<Missing>, _ body: (Block) throws -> Void
  ) throws {
    try forEachPage(missing, body) { entry in
      var map: IPLDMap = [
        "cid": .link(entry.cid), "reason": .string(entry.reason.rawValue),
      ]
      map["size"] = entry.size.map { .integer(Int128($0)) }
      map["status"] = entry.status.map { .integer(Int128($0)) }
      map["firstTried"] = entry.firstTried.map { .string($0) }
      map["lastTried"] = entry.lastTried.map { .string($0) }
      if !entry.isReferenced { map["referenced"] = .boolean(false) }
      if let accepted = entry.accepted {
        var facts: IPLDMap = ["date": .string(accepted.date)]
        facts["reason"] = accepted.reason.map { .string($0) }
        map["accepted"] = .map(facts)
      }
      return .map(map)
    }
  }

  /// Pages that list extras.
  package static func pages(extras: [CID]) throws -> [Block] {
    var pages: [Block] = []
    try forEachPage(extras, { pages.append($0) }) { .link($0) }
    return pages
  }

  private static func forEachPage<Items: RandomAccessCollection>(
    _ items: Items, _ body: (Block) throws -> Void, value: (Items.Element) -> IPLDValue
  ) throws {
    var rest = items[...]
    while !rest.isEmpty {
      var count = min(entriesPerPage, rest.count)
      var bytes = try DAGCBOREncoder.encode(.array(rest.prefix(count).map(value)))
      // Entries may hold long texts.
      while bytes.count > maximumPage, count > 1 {
        count /= 2
        bytes = try DAGCBOREncoder.encode(.array(rest.prefix(count).map(value)))
      }
      rest = rest.dropFirst(count)
      try body(Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes))
    }
  }

  /// Reads a page of missing blobs.
  package static func missing(onPage page: Block) throws(SnapshotError) -> [Missing] {
    var entries: [Missing] = []
    for item in try items(page) {
      guard let cid = item["cid"]?.link, let reason = item["reason"]?.string else {
        throw .malformedPage(page.cid)
      }
      var entry = Missing(
        cid: cid, reason: Reason(rawValue: reason), size: item["size"]?.integer)
      entry.status = item["status"]?.integer
      entry.firstTried = item["firstTried"]?.string
      entry.lastTried = item["lastTried"]?.string
      entry.isReferenced = item["referenced"] != .boolean(false)
      if let accepted = item["accepted"] {
        guard let date = accepted["date"]?.string else { throw .malformedPage(page.cid) }
        entry.accepted = Acceptance(date: date, reason: accepted["reason"]?.string)
      }
      entries.append(entry)
    }
    return entries
  }

  /// Reads a page of extras.
  package static func extras(onPage page: Block) throws(SnapshotError) -> [CID] {
    var links: [CID] = []
    for item in try items(page) {
      guard let link = item.link else { throw .malformedPage(page.cid) }
      links.append(link)
    }
    return links
  }

  private static func items(_ page: Block) throws(SnapshotError) -> [IPLDValue] {
    do {
      if let items = try DAGCBORDecoder.decode(page.bytes.span).array { return items }
    } catch {
      throw .malformedPage(page.cid)
    }
    throw .malformedPage(page.cid)
  }
}
