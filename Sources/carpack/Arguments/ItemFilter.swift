internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Files
internal import IPLD
internal import Snapshots
internal import Terminal

/// Which records a verb is about.
struct RecordFilterOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Only records of this collection, and blobs that they refer to; \"*\" stands for any characters; may be repeated.",
      valueName: "nsid"))
  var collection: [String] = []

  @Option(
    help: ArgumentHelp(
      "Only records made at this time or later: 2025, 2025-03, 2025-03-22, 2025-03-22T10:00, or 30d for the last thirty days.",
      valueName: "time"))
  var since: Date?

  @Option(
    help: ArgumentHelp("Only records made at this time or earlier, likewise.", valueName: "time"))
  var until: Date?

  /// A date or time as a person writes it: `2026`, `2026-11`, `2026-11-21`, `2026-11-21T10:00`; or
  /// how long ago.
  struct Date: ExpressibleByArgument {
    let moment: Moment

    init?(argument: String) {
      let ago = Age(argument: argument).flatMap { age in
        Moment(Host.now)?.earlier(by: age.seconds)
      }
      guard let moment = ago ?? Moment(written: argument) else { return nil }
      self.moment = moment
    }
  }
}

/// Which blobs a verb is about.
struct BlobFilterOptions: ParsableArguments {
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
  private let since: Moment?
  private let until: Moment?

  /// A filter by selectors, of which one has to fit, and options, which all have to.
  ///
  /// - Throws: `BackupError` for a selector that is none; ``Failure`` for a collection.
  init(
    _ selectors: [String], _ options: RecordFilterOptions, _ blobOptions: BlobFilterOptions? = nil
  ) throws {
    self.selectors = try selectors.map { try Selector($0) }
    collections = try options.collection.map { text in
      guard let pattern = PathPattern("\(text)/") else {
        throw Failure("--collection: \"\(text)\" is no collection", status: .usage)
      }
      return pattern
    }
    type = blobOptions?.type.map { Array($0.utf8) }
    minimum = blobOptions?.larger.map { UInt64($0.bytes) }
    (since, until) = (options.since?.moment, options.until?.moment)
  }

  /// Whether records can pass.
  var takesRecords: Bool { type == nil }

  /// Whether it asks for times.
  var needsTimes: Bool { since != nil || until != nil }

  /// Whether everything passes but what selectors leave out.
  var hasNoOptions: Bool { collections.isEmpty && type == nil && minimum == nil && !needsTimes }

  /// Whether a record, or a blob of that record, passes.
  ///
  /// - Parameters:
  ///   - path: the path of the record; nil for a blob that none refers to.
  ///   - cid: the CID of the record or blob.
  ///   - type: the media type of a blob.
  ///   - size: its size, or what the record says of it; not asked for where it is nil.
  ///   - time: when the record was made.
  func passes(
    _ path: [UInt8]?, _ cid: CID, type: String? = nil, size: UInt64?, time: Moment?
  ) -> Bool {
    if needsTimes, !isBetween(time) { return false }
    if let minimum, size ?? 0 <= minimum { return false }
    if let wanted = self.type, !PathPattern.matches(Array((type ?? "").utf8)[...], wanted) {
      return false
    }
    if !collections.isEmpty, !collections.contains(where: { path.map($0.matches) ?? false }) {
      return false
    }
    return selectors.isEmpty || selectors.contains { $0.matches(path, cid) }
  }

  private func isBetween(_ time: Moment?) -> Bool {
    guard let time else { return false }
    if let since, time.seconds < since.seconds { return false }
    // What is named lasts: all of the day, all of the minute.
    if let until, time.seconds >= until.seconds + max(1, until.length / 1_000_000_000) {
      return false
    }
    return true
  }
}

extension ItemFilter {
  /// The records and blobs of a snapshot that pass.
  ///
  /// - Throws: as `SnapshotBlocks.contents` does; `BackupError` if nothing passes.
  func items(
    of archived: ArchivedSnapshot, records: Bool, blobs: Bool,
    observer: @escaping Progress.Observer
  ) throws -> [Selection.Item] {
    var items: [Selection.Item] = []
    let blocks = SnapshotBlocks(archived, keepsRecords: needsTimes, observer: observer)
    var dates = needsTimes ? BlobNotes(in: blocks) : nil
    let contents = try blocks.contents { record, body in
      let time = dates?.time(of: record, body)
      guard records, takesRecords,
        passes(record.key, record.cid, size: record.length, time: time ?? nil)
      else { return }
      items.append(.record(String(decoding: record.key, as: UTF8.self)))
    }
    let entries = contents.blobs.entries
    let states = blobs ? try archived.states(of: entries).states : []
    for (entry, state) in zip(entries, states) {
      var size = entry.size.map { UInt64($0) }
      if case .held(let length) = state { size = length }
      let path = Array(entry.firstRecord.utf8)
      let time = try dates?.time(of: entry.cid, record: path)
      if passes(path, entry.cid, type: entry.mimeType, size: size, time: time) {
        items.append(.cid(entry.cid))
      }
    }
    guard !items.isEmpty else { throw BackupError.notFound("what the filters ask for") }
    return items
  }
}
