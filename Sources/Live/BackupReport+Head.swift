package import ATProtocol
internal import Archive
internal import Files
internal import IPLD
package import SystemPackage
internal import Verification

/// Signing the head of an archive once it is backed up.
extension BackupReport {
  /// Signs what is committed, into a file beside the archive with `.head` in place of `.car.zst`.
  ///
  /// A statement that says the same is left as it is: its older time proves more.
  ///
  /// - Returns: where the statement is; nil if nothing is committed.
  /// - Throws: `BackupError` if it cannot be written.
  package func signHead(with key: PrivateKey, at now: UnixTime) throws -> FilePath? {
    guard generation.head != nil else { return nil }
    let statement = FileNaming.beside(path, ".head")
    if try !isSigned(with: key, in: statement) {
      let text = try HeadStatement(of: generation, at: now, signing: key).text
      try DownloadedFile.memory([text]).save(to: statement, replacing: true)
    }
    return statement
  }

  private func isSigned(with key: PrivateKey, in path: FilePath) throws -> Bool {
    guard AtomicFile.isTaken(path) else { return false }
    let file = try InputFile(path.string)
    guard file.count <= HeadStatement.maximumLength else { return false }
    do {
      let statement = try HeadStatement(file.withBytes { $0.array })
      return statement.head == generation.head?.cid
        && statement.byteCount == generation.committedLength
        && statement.key == key.verificationKey && statement.isSigned
    } catch is BackupError {
      // It is not a statement, and becomes one.
      return false
    }
  }
}
