internal import ATProtocol
internal import Files
internal import IPLD
internal import Terminal

extension ATIdentifier {
  /// The accounts in a file, one a line, in the order of the lines, and what is wrong with lines
  /// that name no account.
  ///
  /// The first word of each line counts; the rest may say who that is. Empty lines and lines that
  /// begin with `#` do not count.
  ///
  /// - Parameter path: the file; `-` is standard input.
  /// - Throws: `BackupError` for a file that cannot be read; ``Failure`` for a list without an
  ///   account.
  static func list(in path: String) throws -> (accounts: [ATIdentifier], failures: [Failure]) {
    let file = try InputFile(path)
    let text = file.withBytes { String(decoding: $0.array, as: UTF8.self) }
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    var (accounts, failures): ([ATIdentifier], [Failure]) = ([], [])
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
    return (accounts, failures)
  }
  /// These accounts, each once, in their order.
  static func unique(_ accounts: [ATIdentifier]) -> [ATIdentifier] {
    var seen: Set<String> = []
    return accounts.filter { seen.insert($0.text).inserted }
  }
}

extension Configuration {
  /// The accounts that the file lists, and those of its list of accounts, each once, and what is
  /// wrong with lines of that list; nil if it names none.
  ///
  /// - Throws: as `ATIdentifier.list(in:)` does.
  func allAccounts() throws -> (accounts: [ATIdentifier], failures: [Failure])? {
    guard !accounts.isEmpty || accountList != nil else { return nil }
    let listed = try accountList.map { try ATIdentifier.list(in: $0) }
    return (
      ATIdentifier.unique(accounts.map(\.account) + (listed?.accounts ?? [])),
      listed?.failures ?? []
    )
  }
}
