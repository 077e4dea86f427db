internal import ATProtocol
internal import ArgumentParser
internal import Backup
internal import IPLD

/// Which records and blobs a verb is about.
struct FilterOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Only records of this collection, and blobs they refer to; \"*\" stands for any characters; may be repeated.",
      valueName: "nsid"))
  var collection: [String] = []

  @Option(
    help: ArgumentHelp("Only blobs of this media type, such as image/*.", valueName: "type"))
  var type: String?

  @Option(help: ArgumentHelp("Only what is larger than this: 500kB, 2MB.", valueName: "size"))
  var larger: ByteSize?
}

/// A choice among the records and blobs of a snapshot.
struct ItemFilter {
  private let selectors: [Selector]
  private let collections: [PathPattern]
  private let type: [UInt8]?
  private let minimum: UInt64?

  /// A filter by selectors, of which one has to fit, and options, which all have to.
  ///
  /// - Throws: `BackupError` for a selector that is none; ``Failure`` for a collection.
  init(_ selectors: [String], _ options: FilterOptions) throws {
    self.selectors = try selectors.map { try Selector($0) }
    collections = try options.collection.map { text in
      guard let pattern = PathPattern("\(text)/") else {
        throw Failure("--collection: \"\(text)\" is no collection", status: .usage)
      }
      return pattern
    }
    type = options.type.map { Array($0.utf8) }
    minimum = options.larger.map { UInt64($0.bytes) }
  }

  /// Whether records can pass.
  var takesRecords: Bool { type == nil }

  /// Whether a record, or a blob of that record, passes.
  ///
  /// - Parameters:
  ///   - path: the path of the record; nil for a blob that none refers to.
  ///   - cid: the CID of the record or blob.
  ///   - type: the media type of a blob.
  ///   - size: its size, or of what the record says.
  func passes(_ path: [UInt8]?, _ cid: CID, type: String? = nil, size: UInt64?) -> Bool {
    if let minimum, size ?? 0 <= minimum { return false }
    if let wanted = self.type, !PathPattern.matches(Array((type ?? "").utf8), wanted) {
      return false
    }
    if !collections.isEmpty, !collections.contains(where: { path.map($0.matches) ?? false }) {
      return false
    }
    return selectors.isEmpty
      || selectors.contains { selector in
        switch selector {
        case .cid(let wanted): wanted == cid
        case .cidPrefix(let prefix): "\(cid)".hasPrefix(prefix)
        case .records(let pattern, _): path.map(pattern.matches) ?? false
        }
      }
  }
}
