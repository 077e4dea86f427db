package import ATProtocol
internal import Archive
internal import Files
internal import IPLD
package import SystemPackage
internal import Verification

/// Signs heads with one key.
///
/// A statement that says the same is left as it is: the older time is the stronger.
package struct HeadSigner: Sendable {
  private let key: PrivateKey

  /// A signer with a key.
  package init(_ key: PrivateKey) { self.key = key }

  /// Signs what a backup has committed; answers where the statement is.
  ///
  /// - Throws: ``BackupError`` if it cannot be written.
  package func sign(_ report: BackupReport, at now: UnixTime) throws -> FilePath? {
    guard report.generation.head != nil else { return nil }
    let path = Self.path(for: report.path)
    if try isSigned(report, at: path) { return path }
    let statement = try HeadStatement(of: report.generation, at: now, signing: key)
    try DownloadedFile.memory([statement.text]).save(to: path, replacing: true)
    return path
  }

  /// The file of an archive's statement: its name with `.head` in place of `.car.zst`.
  static func path(for archive: FilePath) -> FilePath { FileNaming.beside(archive, ".head") }

  private func isSigned(_ report: BackupReport, at path: FilePath) throws -> Bool {
    guard AtomicFile.isTaken(path) else { return false }
    let file = try InputFile(path.string)
    guard file.count <= HeadStatement.maximumLength else { return false }
    do {
      let statement = try HeadStatement(file.withBytes { $0.array })
      return statement.head == report.generation.head?.cid
        && statement.byteCount == report.generation.committedLength
        && statement.key == key.verificationKey && statement.isSigned
    } catch is BackupError {
      // It is no statement, and becomes one.
      return false
    }
  }
}
