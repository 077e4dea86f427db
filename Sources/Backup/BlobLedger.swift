public import IPLD

/// Which blobs are referred to, held, missing and why.
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

    /// What a person reads.
    public var sentence: String {
      switch self {
      case .notProvided: "not among the files given"
      case .mismatch: "the content offered for it was something else"
      case .lost: "lost with damage to an archive that held it"
      default: rawValue
      }
    }
  }

  /// A blob that is referred to and not held.
  public struct Missing: Equatable, Sendable {
    /// The blob.
    public var cid: CID
    /// Why.
    public var reason: Reason
    /// Its length, as the record says.
    public var size: Int?

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
      entries.append(
        Missing(cid: cid, reason: Reason(rawValue: reason), size: item["size"]?.integer))
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
