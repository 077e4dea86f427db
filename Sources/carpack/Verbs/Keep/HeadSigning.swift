internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD
internal import SystemPackage

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Signing the head of an archive once it is backed up.
struct HeadSigningOptions: ParsableArguments {
  /// The variable that holds the passphrase.
  private static let variable = "CARPACK_KEY_PASSPHRASE"
  /// The longest file that is taken for one with a key, in bytes.
  private static let maximumFile = 16_384

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
    guard let signHead else { return nil }
    let file = try InputFile(signHead)
    var status = stat()
    guard unsafe stat(signHead, &status) == 0, status.st_mode & 0o077 == 0 else {
      throw Failure(
        "\(signHead) may be read by others", hint: "chmod 600 \(signHead)", status: .refused,
        at: signHead)
    }
    guard file.count <= Self.maximumFile else {
      throw Failure("\(signHead) is too long to be a key", status: .usage, at: signHead)
    }
    let pem = file.withBytes { $0.array }
    do throws(PrivateKey.Fault) {
      return HeadSigner(
        try PrivateKey(pem: pem, passphrase: Host.environment(Self.variable)?.value.utf8Array))
    } catch {
      guard error == .encrypted, let answer = Console.askSecret("passphrase of the key: ") else {
        throw Self.failure(signHead, error)
      }
      do throws(PrivateKey.Fault) {
        return HeadSigner(try PrivateKey(pem: pem, passphrase: Array(answer.utf8)))
      } catch {
        throw Self.failure(signHead, error)
      }
    }
  }

  private static func failure(_ file: String, _ fault: PrivateKey.Fault) -> Failure {
    let hint =
      switch fault {
      case .encrypted: "set \(variable), or answer on a terminal"
      case .notAKey, .unknownCurve:
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -out \(file) makes one"
      case .wrongPassphrase, .cannotSign: nil as String?
      }
    return Failure("\(file): \(fault)", hint: hint, status: .usage, at: file)
  }
}

/// Signs heads with one key.
///
/// A statement that says the same is left as it is: the older time is the stronger.
struct HeadSigner: @unchecked Sendable {
  // libcrypto's keys may be used by several threads once they are made.
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
    try FetchedPiece([statement.text]).save(to: path, replacing: true)
    return path
  }

  /// The file of an archive's statement: its name with `.head` in place of `.car.zst`.
  static func path(for archive: FilePath) -> FilePath { FileNaming.beside(archive, ".head") }

  private func isSigned(_ report: BackupReport, at path: FilePath) throws -> Bool {
    guard NewArchiveFile.isTaken(path) else { return false }
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

extension String {
  fileprivate var utf8Array: [UInt8] { Array(utf8) }
}
