/// Options that have another name since the release before: the old ones are taken until the next.
enum OldSpelling {
  private static let today = [
    "--accept-rollback": "--accept=rollback", "--allow-unconfirmed-handle": "--accept=handle",
    "--accept-missing": "--accept=missing", "--yes-identity": "--yes=identity",
    "--yes-activate": "--yes=activate", "--yes-deactivate-old": "--yes=deactivate-old",
    "--yes-delete-old": "--yes=delete-old", "--yes-rewrite": "--yes=rewrite",
  ]

  /// The words of a command line with the names of today.
  static func replaced(in words: [String]) -> [String] {
    let options = CommandWords.options(words)
    return options.map { today[$0] ?? $0 } + words.dropFirst(options.count)
  }
}
