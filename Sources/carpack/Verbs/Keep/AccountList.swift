internal import ATProtocol
internal import Files
internal import IPLD
internal import Terminal

/// A file of accounts, one a line.
///
/// Of each line the first word counts; what follows may say who that is. Empty lines and lines that
/// begin with `#` do not count.
struct AccountList {
  /// The accounts, in the order of the lines.
  private(set) var accounts: [ATIdentifier] = []
  /// What is wrong with lines that name no account.
  private(set) var failures: [Failure] = []

  /// Reads a list; `-` is standard input.
  ///
  /// - Throws: `BackupError` for a file that cannot be read; ``Failure`` for a list without an
  ///   account.
  init(_ path: String) throws {
    let file = try InputFile(path)
    let text = file.withBytes { String(decoding: $0.array, as: UTF8.self) }
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() {
      guard let word = line.split(whereSeparator: \.isWhitespace).first, !word.hasPrefix("#") else {
        continue
      }
      do {
        accounts.append(try ATIdentifier(account: String(word)))
      } catch let failure as Failure {
        failures.append(failure.of("\(file.name), line \(index + 1)"))
      }
    }
    guard !accounts.isEmpty || !failures.isEmpty else {
      throw Failure("\(file.name) names no account", status: .noInput, at: file.name)
    }
  }
}
