internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Keys
internal import LibC
internal import Terminal
internal import XRPC

/// A private key in a file that its owner alone may read: PEM, the form that atproto's tools print,
/// or the one in which the reference server keeps its rotation key.
struct KeyFile {
  /// The variable that holds the passphrase.
  static let variable = "CARPACK_KEY_PASSPHRASE"
  /// The longest file that is taken for one with a key, in bytes.
  private static let maximumFile = 16_384

  /// The key.
  let key: PrivateKey
  /// What the file is encrypted with; nil for one in the clear.
  let passphrase: Secret?

  /// Reads a key; the passphrase of an encrypted one is in the environment, or asked for.
  ///
  /// - Throws: ``Failure`` for a file that is not a key, that others may read, or that cannot be
  ///   read.
  init(_ path: String) throws {
    let text = try SecretFile.read(path, limit: Self.maximumFile) { $0.array }
    var status = stat()
    guard unsafe stat(path, &status) == 0, status.st_mode & 0o077 == 0 else {
      throw Failure(
        "\(path) may be read by others", hint: "chmod 600 \(path.shellWord)", status: .refused,
        at: path)
    }
    guard text.count <= Self.maximumFile else {
      throw Failure("\(path) is too long to be a key", status: .usage, at: path)
    }
    do throws(PrivateKey.Fault) {
      key = try PrivateKey(text: text)
      passphrase = nil
      return
    } catch {
      guard error == .encrypted else { throw Self.failure(path, error) }
    }
    let given =
      Host.environment(Self.variable)?.value ?? Console.askSecret("passphrase of \(path): ")
    guard let given else { throw Self.failure(path, .encrypted) }
    do throws(PrivateKey.Fault) {
      key = try PrivateKey(text: text, passphrase: Array(given.utf8))
      passphrase = Secret(given)
    } catch {
      throw Self.failure(path, error)
    }
  }

  private static func failure(_ file: String, _ fault: PrivateKey.Fault) -> Failure {
    Failure(
      "\(file): \(fault)",
      hint: fault == .encrypted ? "set \(variable), or answer on a terminal" : nil,
      status: fault == .wrongPassphrase ? .loginRefused : .usage, at: file)
  }
}
