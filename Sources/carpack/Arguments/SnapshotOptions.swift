internal import ArgumentParser
internal import Snapshots

/// Which snapshot, of which account, a verb is about.
struct SnapshotOptions: ParsableArguments {
  @OptionGroup var accountOption: AccountOption

  @Option(
    name: .customLong("at"), parsing: .unconditional,
    help: ArgumentHelp(
      "The snapshot: latest, its number (1, -1), date (2025-03, 2025-03-22, 2025-03-22T10:00), revision or CID. Numbers are counted from the oldest (1) or from the newest (-1); a date or time means the newest made by then; the CID is that of the manifest or commit. \"carpack log\" lists them.",
      valueName: "snapshot"))
  var at: String?

  /// The parsed selector; nil without --at.
  var selector: SnapshotSelector? {
    get throws { try at.map { text throws in try SnapshotSelector(text) } }
  }
}

/// Which account a verb is about.
struct AccountOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The account, where the archive holds several: a DID, or a handle that it had.",
      valueName: "did|handle"))
  var account: String?
}
