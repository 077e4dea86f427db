public import IPLD

/// Which blobs are referred to, listed, held, missing and why.
///
/// Whether a blob is held is what the archive's index says; the ledger holds what cannot be known otherwise, the reasons. A blob without an
/// entry was simply not among the files given, as all of them are when a CAR is packed alone.
public struct BlobLedger: Equatable, Sendable {
  /// Why a blob is not held.
  public struct Reason: RawRepresentable, Hashable, Sendable {
    /// The word that is written.
    public let rawValue: String

    /// A reason by its word, known or not.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// No file had its content; this is what the absence of an entry says.
    public static let notProvided = Reason(rawValue: "not-provided")
    /// Content was offered under its CID that was something else.
    public static let mismatch = Reason(rawValue: "mismatch")
    /// It was in an archive, and was lost with damage to that.
    public static let lost = Reason(rawValue: "lost")

    /// The server says that it does not have it.
    public static let notFound = Reason(rawValue: "not-found")
    /// The server refuses to give it out.
    public static let refused = Reason(rawValue: "refused")
    /// The server failed each time it was asked.
    public static let serverError = Reason(rawValue: "server-error")
    /// The server answered with too many requests for as long as it was asked.
    public static let rateLimited = Reason(rawValue: "rate-limited")
    /// No whole answer came: the connection failed, stalled or was cut off each time.
    public static let noAnswer = Reason(rawValue: "no-answer")
    /// The server sent it on to where nobody should be sent.
    public static let hostileRedirect = Reason(rawValue: "hostile-redirect")
    /// What the server sent had no end, or was far longer than the record says.
    public static let tooLarge = Reason(rawValue: "too-large")
    /// Its CID has a hash function that cannot be checked, so that nothing can be accepted for it.
    public static let unverifiable = Reason(rawValue: "unverifiable")
    /// The server answered something that is not what was asked for; said of a list of blobs.
    public static let malformed = Reason(rawValue: "malformed")
    /// It had not been asked for when the backup was interrupted.
    public static let notTried = Reason(rawValue: "not-tried")

    /// What a person reads.
    public var sentence: String {
      switch self {
      case .notFound: "the server does not have it"
      case .refused: "the server refuses to give it out"
      case .serverError: "the server failed each time it was asked"
      case .rateLimited: "the server answered too many requests, each time"
      case .noAnswer: "no whole answer came"
      case .hostileRedirect: "the server pointed to an address that is not followed"
      case .tooLarge: "the server sent far more than it should have"
      case .unverifiable: "its hash function is not known here, so nothing can be accepted for it"
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
  public struct Missing: Equatable, Sendable {
    /// The blob.
    public var cid: CID
    /// Why.
    public var reason: Reason
    /// Its length, as the record says.
    public var size: Int?
    /// The HTTP status that a server answered with last.
    public var status: Int?
    /// When it was first asked for in vain, in RFC 3339 and UTC.
    public var firstTried: String?
    /// When it was last asked for in vain.
    public var lastTried: String?
    /// Whether some record refers to it; if none does, a server lists it.
    public var isReferenced = true

    /// An entry of these parts.
    public init(cid: CID, reason: Reason, size: Int?) {
      self.cid = cid
      self.reason = reason
      self.size = size
    }
  }

  /// How many entries a page holds: about 120 bytes each, so that pages stay far below 1 MiB.
  package static let entriesPerPage = 4096

  /// Pages that list missing blobs.
  package static func pages(missing: [Missing]) throws -> [Block] {
    try pages(
      missing.map { entry in
        var map: IPLDMap = [
          "cid": .link(entry.cid), "reason": .string(entry.reason.rawValue),
        ]
        map["size"] = entry.size.map { .integer(Int128($0)) }
        map["status"] = entry.status.map { .integer(Int128($0)) }
        map["firstTried"] = entry.firstTried.map { .string($0) }
        map["lastTried"] = entry.lastTried.map { .string($0) }
        if !entry.isReferenced { map["referenced"] = .boolean(false) }
        return .map(map)
      })
  }

  /// Pages that list extras.
  package static func pages(extras: [CID]) throws -> [Block] { try pages(extras.map { .link($0) }) }

  private static func pages(_ items: [IPLDValue]) throws -> [Block] {
    try stride(from: 0, to: items.count, by: entriesPerPage).map { start in
      let page = Array(items[start..<min(start + entriesPerPage, items.count)])
      let bytes = try DAGCBOREncoder.encode(.array(page))
      return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
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
