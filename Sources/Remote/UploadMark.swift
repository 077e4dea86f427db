internal import Archive
internal import Files
internal import IPLD
internal import LibC
internal import ObjectStore
package import SystemPackage

/// Says on this machine that something is being written to an object.
///
/// It is a locked file in the user's cache. One that is not locked was left by a process that
/// was ended: what that had begun in the store is given up, so that no part of it is kept, and paid
/// for, for ever.
package final class UploadMark: Sendable {
  private let mark: FileStorage
  /// Whether a process that was ended has left it.
  let wasLeft: Bool
  /// What was written into it last, when it was made.
  let note: String
  /// How long a note may be.
  private static let longestNote: UInt64 = 1 << 10
  private let address: String
  private let folder: FilePath

  /// Marks an object; nil if another process on this machine is writing to it.
  ///
  /// - Parameters:
  ///   - address: the object.
  ///   - folder: where marks are kept.
  /// - Throws: ``BackupError`` or `ArchiveError` if the mark cannot be made.
  init?(_ address: String, in folder: FilePath) throws {
    try BlobFolder.make(folder.string)
    (self.address, self.folder) = (address, folder)
    let path = Self.file(of: address, in: folder, ending: "upload")
    wasLeft = AtomicFile.isTaken(path)
    do {
      mark = try FileStorage.openOrCreate(path, permissions: .ownerReadWrite)
    } catch let error as ArchiveError where error.reason == .locked {
      return nil
    }
    let bytes = try mark.read(Int(min(mark.size, Self.longestNote)), at: 0)
    note = String(decoding: bytes, as: UTF8.self)
  }

  /// A file for something else about an object.
  package static func file(of address: String, in folder: FilePath, ending: String) -> FilePath {
    let digest = SHA256.digest(of: Array(address.utf8).span)
    return folder.appending("\(digest.hexadecimal.prefix(32)).\(ending)")
  }

  /// A file beside it, for something else about the object.
  func file(_ ending: String) -> FilePath {
    Self.file(of: address, in: folder, ending: ending)
  }

  /// Writes a note into it, in place of the one before.
  ///
  /// - Throws: `ArchiveError`.
  func write(_ note: String) throws {
    try mark.truncate(to: 0)
    try mark.write(Array(note.utf8).span, at: 0)
  }

  /// Takes the mark away: what was begun is done, or given up.
  func remove() { removeFile("upload") }

  /// Removes a file beside it.
  func removeFile(_ ending: String) {
    // One that stays is used again, or emptied; a mark costs the next writer a question.
    _ = unsafe unlink(file(ending).string)
  }
}
