package import IPLD
package import Snapshots
internal import SystemPackage
package import Verification

/// An archive, `NAME.car.zst`, to look into: its snapshots, their records and blobs.
///
/// ```swift
/// let archive = try Archive(path: "alice.example.com.car.zst")
/// for try await record in try archive.snapshot().records { print(record.path) }
/// ```
/// Nothing is read before it is asked for, and everything that is read is compared with its CID.
///
/// The module `Archive` has the same name. Its types are exported, too, and are written without it
/// where this one is imported: `ArchiveReader`, not `Archive.ArchiveReader`.
public struct Archive: Sendable {
  /// What reads the file.
  public let reader: ArchiveReader

  /// Opens an archive.
  ///
  /// - Throws: `ArchiveError` for a file that cannot be read, or is not an archive.
  public init(path: String) throws { reader = try ArchiveReader(path: FilePath(path)) }

  /// A summary of every snapshot, the oldest first, and where damage has broken their chain.
  ///
  /// - Throws: `ArchiveError` if the archive cannot be read.
  public func history() throws -> SnapshotHistory { try SnapshotHistory(of: reader) }

  /// A snapshot.
  ///
  /// - Parameters:
  ///   - selector: which, as `carpack --at` takes it: `latest`, a number, a date, a revision or a
  ///     CID.
  ///   - account: of whom, a handle or a DID; nil if there is one account.
  /// - Throws: `SelectionError` if no snapshot matches, or several; `SnapshotError` and
  ///   `ArchiveError` for a manifest that is damaged.
  public func snapshot(_ selector: String = "latest", of account: String? = nil) throws
    -> ArchivedSnapshot
  {
    let history = try history()
    let did = try account.map { text throws in try history.account(text) }
    let entry = try history.selectOne(SnapshotSelector(selector), of: did)
    return try ArchivedSnapshot(entry.cid, in: history.reader)
  }

  /// Hashes every byte, walks every tree, and accounts for every blob.
  ///
  /// - Throws: `BackupError` if there is no room for a temporary file; what is wrong with the
  ///   archive is in the report.
  public func verify() throws -> SnapshotVerifier.Report {
    try SnapshotVerifier().verify(reader, .full)
  }
}

extension ArchivedSnapshot {
  /// The records, in the order of the tree, read as they are asked for.
  public var records: Records { Records(of: self) }

  /// The blobs that records refer to, each once, whether the archive holds them or not.
  ///
  /// - Throws: `ArchiveError` and `CARError` if the repository cannot be read; `BackupError` if
  ///   there is no room for a temporary file.
  public func blobs() throws -> BlobTable.Entries {
    try SnapshotBlocks(self).contents().blobs.entries
  }

  /// The bytes of a blob, or of any block; nil if the archive does not hold it.
  ///
  /// - Parameters:
  ///   - cid: which.
  ///   - limit: how long it may be, in bytes: all of it is held in memory.
  /// - Throws: `ArchiveError` if it is damaged, or too long.
  public func blob(_ cid: CID, limit: Int = 64 << 20) throws -> [UInt8]? {
    try reader.body(of: cid, limit: limit)
  }

  /// Hands over a blob of any length, piece by piece.
  ///
  /// - Returns: whether the archive holds it.
  /// - Throws: `ArchiveError` if it is damaged, which may be found out after pieces were handed
  ///   over; what `sink` throws.
  public func readBlob(_ cid: CID, to sink: (Span<UInt8>) throws -> Void) throws -> Bool {
    try reader.read(cid, each: sink)
  }
}
