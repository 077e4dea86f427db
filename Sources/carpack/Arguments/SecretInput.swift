internal import HTTP
internal import IPLD
internal import Keys
internal import Terminal
internal import XRPC

/// A secret that the user gives: in a file, in a variable, or on the terminal; never on the
/// command line, which every process on the machine can read.
struct SecretInput {
  /// What it is, in messages: `app password`.
  let name: String
  /// The variable that may hold it.
  let variable: String
  /// The option that names a file.
  let option: String

  /// The longest file that is taken for one with a password.
  private static let maximumFile = 4096

  /// The secret, if the user gave one.
  ///
  /// - Parameters:
  ///   - file: the file whose first line it is; nil if none was named.
  ///   - asks: whether to ask for it on the terminal.
  /// - Returns: nil if it was given nowhere, or the answer was empty.
  /// - Throws: ``Failure`` for a file or variable that holds none.
  func read(_ file: String?, asks: Bool = true) throws -> Secret? {
    if let file {
      return try SecretFile.read(file, limit: Self.maximumFile) { bytes in
        guard bytes.count <= Self.maximumFile else {
          throw Failure("\(file) is too long to hold a \(name)", status: .usage)
        }
        let text = String(decoding: bytes.array, as: UTF8.self)
        return try secret(text.prefix { !$0.isNewline }, from: file)
      }
    }
    if let variable = Host.environment(variable) {
      return try secret(variable.value[...], from: variable.name)
    }
    guard asks, let text = Console.askSecret("\(name): "), !text.isEmpty else { return nil }
    return Secret(text)
  }

  /// The secret, which is required.
  ///
  /// - Throws: ``Failure`` if it is not.
  func need(_ file: String?) throws -> Secret {
    if let secret = try read(file) { return secret }
    throw Failure(
      "no \(name) was given",
      hint: "set \(variable), name a file with \(option), or answer on a terminal",
      status: .usage)
  }

  private func secret(_ text: Substring, from source: String) throws -> Secret {
    guard !text.isEmpty else { throw Failure("\(source) holds no \(name)", status: .usage) }
    return Secret(String(text))
  }
}
