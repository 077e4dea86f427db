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

  /// A filter by selectors, of which one has to match, and by other conditions, which all have to
  /// hold.
  ///
  /// - Parameters:
  ///   - selectors: the things that are chosen; all if there are none.
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

  /// Whether everything passes except what selectors leave out.
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
    // A bound covers all of the named day or minute.
    if let until, time.seconds >= until.seconds + max(1, until.length / 1_000_000_000) {
      return false
    }
    return true
  }
}

/// A record or a blob of a snapshot, and its state in the archive.
package struct ListedItem {
  /// What it is.
  package enum Kind: String, CaseIterable {
    case record, blob
    /// A blob that no record refers to.
    case extra
  }

  /// What it is.
  package let kind: Kind
  /// The path of the record, or of the first that refers to the blob; nil for an extra.
  package var path: [UInt8]?
  /// The CID of the record or blob.
  package let cid: CID
  /// Whether the archive has it.
  package let state: BlobState
  /// The media type of a blob, as a record says.
  package var type: String?
  /// Its size in bytes; if it is missing, the size that a record declares.
  package var size: UInt64?
  /// Whether its loss is accepted, if it is missing.
  package var accepted: BlobLedger.Acceptance?
  /// When the record was made, if that was requested.
  package var time: Moment?
}

extension ItemFilter {
  /// Walks through a snapshot, and hands over the records and blobs that pass.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - records: whether records are wanted.
  ///   - blobs: whether the blobs are wanted that records refer to.
  ///   - extras: whether the others are.
  ///   - isDated: whether the time of each is wanted, even if this filter does not ask for it.
  ///   - isChecking: as in `ArchivedSnapshot.states`.
  ///   - observer: called with the progress.
  ///   - visit: receives each of them.
  /// - Throws: as `SnapshotBlocks.contents` does; ``SnapshotError`` and `ArchiveError` if a list of
  ///   blobs cannot be read.
  /// - Returns: the repository; and whether only the index was searched for blobs.
  @discardableResult
  package func forEachItem(
    of archived: ArchivedSnapshot, records: Bool, blobs: Bool, extras: Bool = false,
    isDated: Bool = false, isChecking: Bool = false, observer: @escaping Progress.Observer,
    _ visit: (ListedItem) -> Void
  ) throws -> (contents: LaidOutRepository, isByIndex: Bool) {
    let isDated = isDated || needsTimes
    func add(_ item: ListedItem) {
      if passes(item.path, item.cid, type: item.type, size: item.size, time: item.time) {
        visit(item)
      }
    }
    let blocks = SnapshotBlocks(archived, keepsRecords: isDated, observer: observer)
    var dates = isDated ? BlobNotes(in: blocks) : nil
    let contents = try blocks.contents { record, body in
      let time = dates?.time(of: record, body)
      guard records, takesRecords else { return }
      add(
        ListedItem(
          kind: .record, path: record.key, cid: record.cid,
          state: record.length.map { .held($0) } ?? .missing, size: record.length,
          time: time ?? nil))
    }
    var isByIndex = false
    if blobs {
      let entries = contents.blobs.entries
      let accepted = try archived.acceptances()
      let found = try archived.states(of: entries, isChecking: isChecking)
      isByIndex = found.isByIndex
      for (entry, state) in zip(entries, found.states) {
        let path = Array(entry.firstRecord.utf8)
        add(
          ListedItem(
            kind: .blob, path: path, cid: entry.cid, state: state, type: entry.mimeType,
            size: state.size(declared: entry.size),
            accepted: state == .missing ? accepted[entry.cid] : nil,
            time: try dates?.time(of: entry.cid, record: path)))
      }
    }
    if extras {
      let cids = try archived.extras()
      let states = try archived.states(of: cids, isChecking: isChecking && !isByIndex)
      for (cid, state) in zip(cids, states) {
        add(ListedItem(kind: .extra, cid: cid, state: state, size: state.size(declared: nil)))
      }
    }
    return (contents, isByIndex)
  }

  /// The records and blobs of a snapshot that pass.
  ///
  /// - Throws: as ``forEachItem(of:records:blobs:extras:isDated:isChecking:observer:_:)`` does;
  ///   ``BackupError`` if nothing passes.
  package func items(
    of archived: ArchivedSnapshot, records: Bool, blobs: Bool,
    observer: @escaping Progress.Observer
  ) throws -> [Selection.Item] {
    var items: [Selection.Item] = []
    try forEachItem(of: archived, records: records, blobs: blobs, observer: observer) { item in
      if item.kind == .record, let path = item.path {
        items.append(.record(String(decoding: path, as: UTF8.self)))
      } else {
        items.append(.cid(item.cid))
      }
    }
    guard !items.isEmpty else { throw BackupError.notFound("what the filters ask for") }
    return items
  }
}
