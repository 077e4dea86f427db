internal import ATProtocol
internal import Archive
internal import IPLD

/// What an archive lacks of the blobs of a snapshot, with all that is known about each.
public enum MissingBlobs {
  /// A blob that is missing.
  public struct Entry: Sendable {
    /// What the ledger says.
    public let blob: BlobLedger.Missing
    /// The record that refers to it first; nil if none does.
    public let record: String?
    /// Its media type, as a record says.
    public let mimeType: String?
  }

  /// The blobs that records of a snapshot refer to, or that a server listed, and that the archive does not hold now.
  ///
  /// - Throws: ``BackupError``, ``SnapshotError`` and `ArchiveError` for a snapshot that is damaged.
  public static func of(_ archived: ArchivedSnapshot) throws -> [Entry] {
    let restored = try RestoredRepository(archived)
    if let flaw = restored.flaw { throw BackupError.carNotExact(flaw) }
    let blobs = try restored.withBytes { bytes throws(CARError) in
      try RepositoryInspector.inspect(bytes, verifying: false).blobs
    }
    let noted = try archived.missingBlobs()
    let known = Dictionary(noted.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
    var entries: [Entry] = []
    let referenced = blobs.entries
    for (entry, match) in zip(
      referenced, try archived.reader.matches(referenced.count) { referenced[$0].cid })
    where match == nil {
      let blob =
        known[entry.cid]
        ?? BlobLedger.Missing(cid: entry.cid, reason: .notProvided, size: entry.size)
      entries.append(Entry(blob: blob, record: entry.firstRecord, mimeType: entry.mimeType))
    }
    let listed = noted.filter { !$0.isReferenced && !blobs.contains($0.cid) }
    for (blob, match) in zip(listed, try archived.reader.matches(listed.count) { listed[$0].cid })
    where match == nil {
      entries.append(Entry(blob: blob, record: nil, mimeType: nil))
    }
    return entries
  }
}
