/// Options that were renamed in the last release: the old names are accepted until the next one.
enum OldSpelling {
  private static let today = [
    "--accept-rollback": "--accept=rollback", "--allow-unconfirmed-handle": "--accept=handle",
    "--accept-missing": "--accept=missing", "--yes-identity": "--yes=identity",
    "--yes-activate": "--yes=activate", "--yes-deactivate-old": "--yes=deactivate-old",
    "--yes-delete-old": "--yes=delete-old", "--yes-rewrite": "--yes=rewrite",
  ]

  /// The words of a command line with the current names.
  static func replaced(in words: [String]) -> [String] {
    let options = CommandWords.options(words)
    return options.map { today[$0] ?? $0 } + words.dropFirst(options.count)
  }
}
