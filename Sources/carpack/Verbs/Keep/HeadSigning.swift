internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Live
internal import SystemPackage
internal import Terminal
internal import Verification

/// Signing the head of an archive once it is backed up.
struct HeadSigningOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Sign the archive's head with this private key (PEM, readable by you alone), into NAME.head beside the archive. The passphrase of an encrypted key is read from CARPACK_KEY_PASSPHRASE, or asked for.",
      valueName: "keyfile"),
    completion: .file())
  var signHead: String?

  /// What signs heads; nil if none are to be signed.
  ///
  /// - Throws: ``Failure`` for a file that is no key, that others may read, or that cannot be read.
  func signer() throws -> HeadSigner? {
    try signHead.map { path throws in HeadSigner(try KeyFile(path).key) }
  }
}

/// Signs heads with one key.
///
/// A statement that says the same is left as it is: the older time is the stronger.
struct HeadSigner: Sendable {
  private let key: PrivateKey

  init(_ key: PrivateKey) { self.key = key }

  /// Signs what a backup has committed; answers where the statement is.
  ///
  /// - Throws: ``Failure`` if it cannot be written.
  func sign(_ report: BackupReport) throws -> FilePath? {
    guard report.generation.head != nil else { return nil }
    let path = Self.path(for: report.path)
    if try isSigned(report, at: path) { return path }
    guard let now = UnixTime(Host.now) else {
      throw Failure("the clock is not to be read", status: .failure)
    }
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
