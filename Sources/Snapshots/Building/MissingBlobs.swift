internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD

/// What an archive lacks of the blobs of a snapshot, with all that is known about each.
package enum MissingBlobs {
  /// A blob that is missing.
  package struct Entry: Sendable {
    /// What the ledger says.
    package let blob: BlobLedger.Missing
    /// The record that refers to it first; nil if none does.
    package let record: String?
    /// Its media type, as a record says.
    package let mimeType: String?
    /// What is wrong with it, if it is here and damaged.
    package let damage: String?
  }

  /// The blobs that records of a snapshot refer to, or that a server listed, and that the archive
  /// does not hold now.
  ///
  /// What is stored of each is compared with its checksum, so this takes as long as to read the
  /// blobs once.
  ///
  /// - Throws: ``BackupError``, ``SnapshotError`` and `ArchiveError` for a snapshot that is
  ///   damaged.
  package static func of(_ archived: ArchivedSnapshot) throws -> [Entry] {
    let contents = try SnapshotBlocks(archived).contents()
    if let flaw = contents.flaw { throw BackupError.carNotExact(flaw) }
    let blobs = contents.blobs
    let noted = try archived.missingBlobs()
    let known = Dictionary(noted.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
    var entries: [Entry] = []
    let referenced = blobs.entries
    let reader = archived.reader
    let states = try reader.states(referenced.count, isChecking: true) { referenced[$0].cid }
    for (entry, state) in zip(referenced, states) where state.bodyLength == nil {
      let reason: BlobLedger.Reason = state.isDamaged ? .lost : .notProvided
      let blob =
        known[entry.cid] ?? BlobLedger.Missing(cid: entry.cid, reason: reason, size: entry.size)
      entries.append(
        Entry(
          blob: blob, record: entry.firstRecord, mimeType: entry.mimeType, damage: state.damage))
    }
    let listed = noted.filter { !$0.isReferenced && !blobs.contains($0.cid) }
    let extras = try archived.extras().map { extra in
      var blob = BlobLedger.Missing(cid: extra, reason: .lost, size: nil)
      blob.isReferenced = false
      return blob
    }
    let others = listed + extras
    let otherStates = try reader.states(others.count, isChecking: true) { others[$0].cid }
    for (blob, state) in zip(others, otherStates) where state.bodyLength == nil {
      entries.append(Entry(blob: blob, record: nil, mimeType: nil, damage: state.damage))
    }
    return entries
  }
}

extension SectionState {
  /// What is wrong with what is there; nil if nothing is.
  fileprivate var damage: String? {
    if case .damaged(let error) = self { "\(error)" } else { nil }
  }
}
