internal import ATProtocol
package import Files
package import IPLD
package import Snapshots

/// A choice among the records and blobs of a snapshot.
package struct ItemFilter {
  private let selectors: [Selector]
  private let collections: [PathPattern]
  private let type: [UInt8]?
  private let minimum: UInt64?
  private let since: Moment?
  private let until: Moment?

  /// A filter by selectors, of which one has to fit, and the rest, which all have to.
  ///
  /// - Parameters:
  ///   - selectors: the things that are meant; all if there are none.
  ///   - collections: the collections of records, as far as these are limited.
  ///   - type: the media type of blobs, where `*` stands for any characters.
  ///   - minimum: what the size has to exceed.
  ///   - since: the first time of a record.
  ///   - until: the last; what it names lasts, such as all of a day.
  package init(
    _ selectors: [Selector], collections: [PathPattern] = [], type: String? = nil,
    largerThan minimum: UInt64? = nil, since: Moment? = nil, until: Moment? = nil
  ) {
    (self.selectors, self.collections) = (selectors, collections)
    (self.minimum, self.since, self.until) = (minimum, since, until)
    self.type = type.map { Array($0.utf8) }
  }

  /// Whether records can pass.
  package var takesRecords: Bool { type == nil }

  /// Whether it asks for times.
  package var needsTimes: Bool { since != nil || until != nil }

  /// Whether everything passes but what selectors leave out.
  package var hasNoOptions: Bool {
    collections.isEmpty && type == nil && minimum == nil && !needsTimes
  }

  /// Whether a record, or a blob of that record, passes.
  ///
  /// - Parameters:
  ///   - path: the path of the record; nil for a blob that none refers to.
  ///   - cid: the CID of the record or blob.
  ///   - type: the media type of a blob.
  ///   - size: its size, or what the record says of it; not asked for where it is nil.
  ///   - time: when the record was made.
  package func passes(
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
  /// - Throws: as `SnapshotBlocks.contents` does; ``BackupError`` if nothing passes.
  package func items(
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
