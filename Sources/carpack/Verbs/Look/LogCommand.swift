internal import ArgumentParser
internal import Extraction
internal import Files
internal import Remote
internal import Reports
internal import SystemPackage
internal import Terminal

/// `carpack log`: every snapshot that an archive holds.
struct LogCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    _superCommandName: Carpack.name,
    abstract: "List the snapshots: when, whose, what they hold, what they added.",
    usage: """
      carpack log [<options>] <archive> ...
      carpack log [<options>] <archive> <record>
      """,
    discussion: Help.discussion(
      """
      The newest comes first. The number counts from the oldest, over all accounts in the file, and is what --at of the other verbs takes, as it takes a date, a revision or a CID. "blobs" is how many of those that records refer to were there when the snapshot was made. "added" is by how many bytes the file grew for it. With --json one object a line.

      With a RECORD behind the archive (collection/rkey, an rkey, an at:// URI), the history of that record: the snapshots in which it was created, updated or deleted.

      "found, not committed" marks a snapshot that no footer leads to: what an unfinished write has left, or what was found around damage. --at reads it; "carpack repair" puts it into the history.

      Exit status: 0; 10 if a write was not finished; 11 if a snapshot, or what leads to it, is damaged: all others are listed.
      """,
      examples: [
        "carpack log alice.example.com.car.zst",
        "carpack log --account bob.example.com all.car.zst",
        "carpack log alice.example.com.car.zst app.bsky.actor.profile/self",
      ]))

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var accountOption: AccountOption

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    if let (file, selector) = try selectedRecord() {
      let status = try Failure.naming(RemoteArchive.shown(file)) {
        let opened = try OpenedArchive(file, argument.limits.limits, argument.store)
        return try opened.checkingFetched {
          try RecordLog(opened, accountOption).show(selector, json: json)
        }
      }
      if status != .success { throw status }
      return
    }

    let isOne = argument.archives.isOne
    try argument.archives.each { opened in
      let list = try SnapshotList(opened, account: accountOption.account)
      if !isOne, !json { Console.print("\(opened.name):") }
      return try list.show(json: json)
    }.finish(common)
  }

  /// The archive, and the record whose history is asked for; nil if none is.
  ///
  /// The last argument names a record if it is no file, and reads like one.
  private func selectedRecord() throws -> (file: String, selector: String)? {
    guard argument.paths.count == 2, let word = argument.paths.last,
      !AtomicFile.isTaken(FilePath(word)), !RemoteArchive.shown(word).hasSuffix(".zst"),
      !RemoteArchive.isFolder(word),
      case .records(let pattern, _) = try Selector(word)
    else { return nil }
    guard pattern.exactPath != nil || pattern.isKeyAlone else {
      throw Failure(
        "\"\(word)\" may mean several records", hint: "name one, by collection/rkey", status: .usage
      )
    }
    return (argument.paths[0], word)
  }
}
