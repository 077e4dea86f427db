import ATProtocol
import Archive
import Foundation
import IPLD
import Snapshots
import Synchronization
import SystemPackage

/// An archive that is served, as it was when it was opened; when the file has changed, another
/// takes its place.
final class ShelvedArchive: Sendable {
  /// What tells whether a file is still the same.
  struct Identity: Hashable, Sendable {
    let device, inode, size: UInt64
    let modified: Date?

    /// That of the file at a path; nil if there is none.
    init?(path: String) {
      guard let attributes = try? FileManager.default.attributesOfItem(atPath: path),
        let inode = (attributes[.systemFileNumber] as? NSNumber)?.uint64Value,
        let size = (attributes[.size] as? NSNumber)?.uint64Value
      else { return nil }
      self.inode = inode
      self.size = size
      device = (attributes[.systemNumber] as? NSNumber)?.uint64Value ?? 0
      modified = attributes[.modificationDate] as? Date
    }

    /// Whether it may be the same file with more at its end.
    func isContinued(by other: Identity) -> Bool {
      device == other.device && inode == other.inode && size <= other.size
    }
  }

  /// Blobs that have been hashed since the process began.
  final class HashedBlobs: Sendable {
    private let known = Mutex<Set<CID>>([])

    func contains(_ cid: CID) -> Bool { known.withLock { $0.contains(cid) } }
    func insert(_ cid: CID) { known.withLock { _ = $0.insert(cid) } }
  }

  /// Where it lies.
  let path: String
  /// Which file it is.
  let identity: Identity
  /// What reads it.
  let reader: ArchiveReader
  /// All its snapshots.
  let history: SnapshotHistory
  /// Of each account the one that is served.
  let served: [SnapshotHistory.Entry]
  private let hashed: HashedBlobs

  /// The name of its file.
  var name: String { FilePath(path).lastComponent?.string ?? path }

  /// What its address on the page ends with: the name of its file, behind what tells it from others
  /// of that name.
  let address: String

  /// Opens an archive.
  ///
  /// - Throws: `ArchiveError` for a file that cannot be read; `SelectionError` if it has no such
  ///   snapshot.
  init(
    path: String, _ identity: Identity, _ selector: SnapshotSelector, _ limits: ArchiveLimits,
    after earlier: ShelvedArchive?
  ) throws {
    (self.path, self.identity) = (path, identity)
    let mark = "\(CID(codec: .raw, hashing: Array(path.utf8).span))".suffix(8)
    address = "\(mark)/\(FilePath(path).lastComponent?.string ?? path)"
    let opened = try ArchiveReader(path: FilePath(path), limits: limits)
    try opened.refuseTooMuchContent()
    history = try SnapshotHistory(of: opened)
    reader = history.reader
    served = history.entries.isEmpty ? [] : try history.select(selector)
    let isSame = earlier?.identity.isContinued(by: identity) ?? false
    hashed = isSame ? earlier?.hashed ?? HashedBlobs() : HashedBlobs()
  }

  /// Makes sure, once in the life of the process, that a blob hashes to its CID.
  ///
  /// - Returns: whether it was hashed now.
  /// - Throws: `ArchiveError` if it does not.
  func hashOnce(_ blob: CID) throws -> Bool {
    guard !hashed.contains(blob) else { return false }
    try reader.read(blob) { _ in }
    hashed.insert(blob)
    return true
  }
}
