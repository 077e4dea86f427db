package import ATProtocol
internal import Archive
package import Files
internal import Synchronization
public import SystemPackage

/// A folder of archives, one for each account.
///
/// An archive is called after the account's handle, or its DID if it has none. Handles change; so
/// an account that has an archive in the folder keeps it, whatever that is called.
public final class ArchiveFolder: Sendable {
  /// Where it is.
  public let path: FilePath
  /// Whose newest snapshot each archive has; nil before the folder has been looked through.
  private let known = Mutex<[DID: FilePath]?>(nil)

  /// A folder, which need not be there yet.
  public init(_ path: FilePath) { self.path = path }

  /// All archives in a folder and the folders within, by their paths, in the order of these.
  ///
  /// Hidden files and what is in hidden folders are none.
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
      if let known { return known[did] }
      let found = try look()
      known = found
      return found[did]
    }
  }

  /// The archive that a handle's account has, or would have.
  package func archive(named handle: Handle) -> FilePath { file(handle.text) }

  /// The name for the archive of an account that has none yet, and from now on the account's.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - handle: its handle, if it has one.
  ///   - isMade: whether the folder is made, if it is not there.
  /// - Throws: ``BackupError`` for a folder that cannot be made.
  package func newArchive(of did: DID, handle: Handle?, isMade: Bool = true) throws -> FilePath {
    if isMade { try make() }
    return known.withLock { known in
      var name = file(handle?.text ?? did.text)
      // Another account had the handle before, or claims it now.
      let isGiven = known?.contains { $0.value == name && $0.key != did } ?? false
      if handle != nil, isGiven || AtomicFile.isTaken(name) { name = file(did.text) }
      known?[did] = name
      return name
    }
  }

  private func file(_ name: String) -> FilePath {
    path.appending(FileNaming.name(name, ending: FileNaming.archiveEnding))
  }

  private func make() throws {
    guard !path.isEmpty, !AtomicFile.isTaken(path) else { return }
    try BlobFolder.make(path.string)
  }

  private func look() throws -> [DID: FilePath] {
    let folder = path.isEmpty ? "." : path.string
    guard AtomicFile.isTaken(FilePath(folder)) else { return [:] }
    var found: [DID: FilePath] = [:]
    // Hidden files are left alone: no archive has such a name.
    for name in try BlobFolder.names(in: folder).sorted()
    where name.hasSuffix(FileNaming.archiveEnding) && !name.hasPrefix(".") {
      let file = path.appending(name)
      do {
        let reader = try ArchiveReader(path: file)
        guard let head = reader.generation.head?.cid else { continue }
        let snapshot = try ArchivedSnapshot(head, in: reader)
        if found[snapshot.snapshot.did] == nil { found[snapshot.snapshot.did] = file }
      } catch is ArchiveError, is SnapshotError {
        // Not an archive; a backup that is to write to it says so.
        continue
      }
    }
    return found
  }
}
