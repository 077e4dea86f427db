package import ATProtocol
package import Archive
package import Files
internal import IPLD
internal import Synchronization
public import SystemPackage

/// A folder of archives, one for each account.
///
/// An archive is named after the account's handle, or its DID if it has none. Handles change; so
/// an account that has an archive in the folder keeps it, whatever its name.
public final class ArchiveFolder: Sendable {
  /// Its path.
  public let path: FilePath
  /// Its content; nil before the folder has been searched.
  private let known = Mutex<Contents?>(nil)
  private let observer: @Sendable (Event) -> Void

  /// Something that the user should know about a folder.
  package enum Event: Sendable {
    /// It did not exist, and was created.
    case made(FilePath)
    /// This archive was skipped, because a key is missing, or it may not be read: its account is
    /// unknown, and may be one that gets a new archive.
    case unopened(FilePath, any ArchiveFileError)
  }

  private struct Contents {
    /// The archive of each account: one with a snapshot of it, or else one that has lost its
    /// snapshots.
    var archives: [DID: FilePath] = [:]
    /// Why archives were skipped that may be any account's.
    var unopened: [FilePath: any ArchiveFileError] = [:]
    /// Whether these were reported.
    var isSaid = false

    /// Says which archives were skipped, once: each may be the one of an account that begins
    /// another.
    mutating func saySkipped(to observer: (Event) -> Void) {
      guard !isSaid else { return }
      isSaid = true
      for (file, error) in unopened.sorted(by: { $0.key.string < $1.key.string }) {
        observer(.unopened(file, error))
      }
    }
  }

  /// A folder, which need not exist yet.
  public convenience init(_ path: FilePath) { self.init(path) { _ in } }

  /// A folder, and a function that is called with each notice.
  package init(_ path: FilePath, observer: @escaping @Sendable (Event) -> Void) {
    (self.path, self.observer) = (path, observer)
  }

  /// All archives in a folder and the folders within, by their paths, in the order of these.
  ///
  /// Hidden files and the content of hidden folders are ignored.
  ///
  /// - Throws: ``BackupError`` for a folder that cannot be read.
  package static func archives(
    in folder: String, unreadable: (BackupError) throws -> Void = { throw $0 }
  ) throws -> [String] {
    try BlobFolder(folder).files(unreadable: unreadable).filter { path in
      path.hasSuffix(FileNaming.archiveEnding) && !path.dropFirst(folder.count).contains("/.")
    }
  }

  /// The archive of an account, if there is one.
  ///
  /// - Throws: ``BackupError`` for a folder that cannot be read.
  package func archive(of did: DID) throws -> FilePath? {
    try known.withLock { known in
      if let known { return known.archives[did] }
      let found = try look()
      known = found
      return found.archives[did]
    }
  }

  /// The archive that a handle's account has, or would have.
  package func archive(named handle: Handle) -> FilePath { file(handle.text) }

  /// The name for the archive of an account that has none yet, and from now on the account's.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - handle: its handle, if it has one.
  ///   - isMade: whether to create the folder if it does not exist.
  /// - Throws: ``BackupError`` for a folder that cannot be made, or that would lie in one that is
  ///   not there; for an archive that has such a name and was skipped, why it was.
  package func newArchive(of did: DID, handle: Handle?, isMade: Bool = true) throws -> FilePath {
    try make(isMade)
    return try known.withLock { known in
      let names = [handle?.text, did.text].compactMap(\.self).map(file)
      // It may be this account's archive.
      for name in names { if let error = known?.unopened[name] { throw error.of(name.string) } }
      known?.saySkipped(to: observer)
      // Another account had the handle before, or claims it now. If a file with that name belongs
      // to no account, the backup reports what is wrong with it.
      let isGiven = known?.archives.contains { $0.value == names[0] && $0.key != did } ?? false
      let name = isGiven ? file(did.text) : names[0]
      known?.archives[did] = name
      return name
    }
  }

  private func file(_ name: String) -> FilePath {
    path.appending(FileNaming.name(name, ending: FileNaming.archiveEnding))
  }

  private func make(_ isMade: Bool) throws {
    guard !path.isEmpty, !AtomicFile.isTaken(path) else { return }
    guard isMade else { return try AtomicFile.requireFolder(of: path) }
    if try BlobFolder.makeLast(path.string) { observer(.made(path)) }
  }

  private func look() throws -> Contents {
    let folder = path.isEmpty ? "." : path.string
    var found = Contents()
    var damaged: [DID: FilePath] = [:]
    guard AtomicFile.isTaken(FilePath(folder)) else { return found }
    // Hidden files are left alone: no archive has such a name.
    for name in try BlobFolder.names(in: folder).sorted()
    where name.hasSuffix(FileNaming.archiveEnding) && !name.hasPrefix(".") {
      let file = path.appending(name)
      do {
        let reader = try ArchiveReader(path: file)
        if let did = try account(of: reader) {
          if found.archives[did] == nil { found.archives[did] = file }
        } else if let owner = reader.owner, damaged[owner] == nil {
          damaged[owner] = file
        }
      } catch let error as ArchiveError where error.faultKind != .system {
        // Not an archive; a backup that is to write to it says so.
        continue
      } catch let error as any ArchiveFileError {
        found.unopened[file] = error
      }
    }
    found.archives.merge(damaged) { intact, _ in intact }
    return found
  }

  /// The account of an archive's newest snapshot; nil if there is none that can be read.
  private func account(of reader: ArchiveReader) throws -> DID? {
    do {
      return try reader.generation.head.map {
        try ArchivedSnapshot($0.cid, in: reader).snapshot.did
      }
    } catch is ArchiveError, is SnapshotError {
      return nil
    }
  }
}
