import ATProtocol
import Archive
import Files
import IPLD
import Remote
import Snapshots
import Synchronization
import SystemPackage

/// An archive that is served, as it was when it was opened; when the file has changed, another
/// takes its place.
final class ShelvedArchive: Sendable {
  /// What tells whether a file is still the same.
  struct Identity: Hashable, Sendable {
    /// That of a file that lies here.
    let file: FileIdentity?
    /// What the store says of a remote archive.
    let version: String

    /// That of a remote archive.
    init(version: String) { (file, self.version) = (nil, version) }

    /// That of the file at a path; nil if there is none.
    init?(path: String) {
      guard let file = FileIdentity(FilePath(path)) else { return nil }
      (self.file, version) = (file, "")
    }

    /// Whether it may be the same file with more at its end.
    func isContinued(by other: Identity) -> Bool {
      file?.device == other.file?.device && file?.inode == other.file?.inode
        && (file?.size ?? 0) <= (other.file?.size ?? 0) && version == other.version
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
  /// Its bytes, if they do not lie here as they are: it lies elsewhere, or is sealed.
  let far: MappedFile?
  /// Whether only those who have a key can read its file.
  let isSealed: Bool
  /// What reads it.
  let reader: ArchiveReader
  /// All its snapshots.
  let history: SnapshotHistory
  /// Of each account the one that is served.
  let served: [SnapshotHistory.Entry]
  /// Its blobs that hash to their CIDs.
  let hashed: HashedBlobs

  /// The name of its file.
  let name: String

  /// Whether what was read of it is what it holds, so that it can be read on.
  var isReadable: Bool {
    guard let far else { return !reader.isCutOff }
    do {
      try far.checkFetched()
      return true
    } catch {
      return false
    }
  }

  /// What its address on the page ends with: the name of its file, after what tells it from others
  /// of that name.
  let address: String

  /// Opens an archive.
  ///
  /// - Parameter far: its bytes, if it lies elsewhere.
  /// - Throws: `ArchiveError` for a file that cannot be read; `SelectionError` if it has no such
  ///   snapshot; `FetchFailure` if it cannot be fetched.
  init(
    path: String, _ identity: Identity, far: MappedFile?, _ selector: SnapshotSelector,
    _ limits: ArchiveLimits, after earlier: ShelvedArchive?
  ) throws {
    (self.path, self.identity) = (path, identity)
    // For a sealed archive, its content is served.
    let stored = try far ?? MappedFile(FilePath(path))
    let file = try stored.archive()
    isSealed = file !== stored
    self.far = file.isFetched ? file : nil
    (name, address) = Self.nameAndAddress(path)
    let opened = try ArchiveReader(file, limits: limits)
    try opened.refuseTooMuchContent()
    history = try SnapshotHistory(of: opened)
    reader = history.reader
    served = history.entries.isEmpty ? [] : try history.select(selector)
    let isSame = earlier?.identity.isContinued(by: identity) ?? false
    hashed = isSame ? earlier?.hashed ?? HashedBlobs() : HashedBlobs()
    try reader.checkFetched()
  }

  /// The name of the file at a path, and its address on the page.
  static func nameAndAddress(_ path: String) -> (name: String, address: String) {
    let mark = "\(CID(codec: .raw, hashing: Array(path.utf8).span))".suffix(8)
    let shown = RemoteArchive.shown(path)
    let name = FilePath(shown).lastComponent?.string ?? shown
    return (name, "\(mark)/\(name)")
  }

  /// How much of the file is given out: what is committed, or all, if nothing is.
  var length: UInt64 {
    reader.generation.number > 0 ? reader.generation.committedLength : reader.fileSize
  }

  /// A strong ETag (RFC 9110, section 8.8.1) of what is given out of the file.
  ///
  /// The newest manifest proves all content, and the checksums of the index how it lies in the
  /// file. Without a manifest, the time of the last change counts.
  var tag: String {
    let generation = reader.generation
    let content = generation.head.map { "\($0.cid)" } ?? "\(identity.file?.modified ?? 0)"
    let index = generation.segments.reduce(0) { $0 &* 31 &+ $1.checksum }
    let place = far == nil ? "\(identity.file?.inode ?? 0)" : "far"
    return "\"\(place)-\(length)-\(content)-\(String(index, radix: 16))\""
  }

  /// Makes sure that a blob hashes to its CID.
  ///
  /// - Parameter hasRead: called with the number of bytes after each piece.
  /// - Throws: `ArchiveError` if it does not; `FetchFailure` if the file was cut off.
  func hash(_ blob: CID, hasRead: (Int) -> Void) throws {
    try reader.read(blob) { hasRead($0.count) }
    hashed.insert(blob)
  }
}
