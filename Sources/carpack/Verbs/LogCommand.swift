internal import ArgumentParser
internal import Backup

/// `carpack log`: every snapshot that an archive holds.
struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    _superCommandName: Carpack.name,
    abstract: "List the snapshots: when, whose, what they hold, what they added.",
    discussion: """
      The newest comes first. The number counts from the oldest, over all accounts in the file, and is what --at of the other verbs takes, as it takes a date, a revision or a CID. "blobs" is how many of those that records refer to were there when the snapshot was made. "added" is by how many bytes the file grew for it. With --json one object a line.

      "found, not committed" marks a snapshot that no footer leads to: what an unfinished write has left, or what was found around damage. --at reads it; "carpack repair" puts it into the history.

      Exit status: 0; 10 if a write was not finished; 11 if a snapshot, or what leads to it, is damaged: all others are listed.
      """)

  @OptionGroup var archive: ArchiveArgument

  @OptionGroup var accountOption: AccountOption

  @Flag(help: "Write JSON, one object a line.")
  var json = false

  @OptionGroup var common: CommonOptions

  func run() throws {
    let opened = try archive.open()
    let list = try SnapshotList(opened, account: accountOption.account)
    let status = try list.show(json: json)
    if status != .success { throw status }
  }
}
