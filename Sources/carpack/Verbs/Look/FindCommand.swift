internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Files
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack find`: the records of all snapshots that contain a text.
struct FindCommand: ReportingCommand {
  static let page = ManualPage("find", PackageResources.find_txt)

  @Argument(help: ArgumentHelp("The text (case is ignored).", valueName: "text"))
  var text: String

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var accountOption: AccountOption

  @Flag(help: "Also search other people and their posts, as an app view showed them.")
  var context = false

  @OptionGroup var filters: RecordFilterOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    if text.hasSuffix(".car.zst"), AtomicFile.isTaken(FilePath(text)),
      let first = argument.paths.first, !AtomicFile.isTaken(FilePath(first))
    {
      throw Failure(
        "\(first) is not an archive",
        hint: "the text comes first: carpack find \(first.shellWord) \(text.shellWord)",
        status: .usage)
    }
    guard let pattern = TextPattern(text) else {
      throw Failure("the text is empty", status: .usage)
    }
    let filter = try ItemFilter([], filters)
    var foundCount = 0
    let outcomes = try argument.archives.each { opened in
      let history = try opened.usableHistory()
      var search = RecordSearch(
        pattern, in: opened.reader, observer: ProgressLine.observer(quiet: common.quiet))
      try search.run(
        history, of: try history.account(accountOption.account), passing: filter
      ) { match, did in
        foundCount += 1
        show(match, of: did, in: history, opened.name)
      }
      if context { foundCount += try findContext(pattern, history, opened) }
      return .worst(opened.say(search.gaps), opened.status)
    }
    if foundCount == 0, outcomes.worst == .success {
      throw Failure(
        "\"\(text)\" was not found in any record\(context ? " or in the context" : "")",
        status: .noInput)
    }
    common.say(
      "\(context ? Quantity.count(foundCount, "match", "matches") : Quantity.count(foundCount, "record")) found"
    )
    try outcomes.worst.finish()
  }

  /// Looks through what app views have shown, in the newest snapshot of each account; returns how
  /// much was found.
  private func findContext(
    _ pattern: TextPattern, _ history: SnapshotHistory, _ opened: OpenedArchive
  ) throws -> Int {
    let account = try history.account(accountOption.account)
    var count = 0
    for entry in history.newestOfAccounts where account == nil || entry.did == account {
      try opened.snapshot(entry).forEachContextItem { item in
        guard let excerpt = pattern.firstMatch(in: item.texts) else { return }
        count += 1
        ContextListing.show((opened.name, entry.did, item, excerpt), json: json)
      }
    }
    return count
  }

  private func show(
    _ match: RecordSearch.Match, of did: DID, in history: SnapshotHistory, _ file: String
  ) {
    if json { return Self.report.print((file, did, match)) }
    let span =
      match.isCurrent
      ? "since snapshot \(match.first)"
      : match.first == match.last
        ? "in snapshot \(match.first)" : "in snapshots \(match.first)-\(match.last)"
    // The longest that there can be.
    let last = history.entries.count
    let snapshots = span.padded(to: "in snapshots \(last)-\(last)".count)
    let date = (match.time?.day ?? "-").padded(to: 10)
    Console.print(
      named: "at://\(history.name(of: did))/\(match.path)  \(date)  \(snapshots)  \(match.excerpt)")
  }

  static let report = Report<(file: String, did: DID, match: RecordSearch.Match)>(
    "find", "`carpack find`: a record that contains the text."
  ) {
    ArchiveFields.file { $0.file }
    Field("account", "whose it is") { $0.did }
    Field("path", "collection/rkey") { $0.match.path }
    Field("cid", "the record") { $0.match.cid }
    Field("createdAt", "its date; null without one") { $0.match.time?.text }
    Field("excerpt", "the text with its surroundings") { $0.match.excerpt }
    Field("firstSnapshot", "the first snapshot that has it") { $0.match.first }
    Field("lastSnapshot", "the last snapshot that has it") { $0.match.last }
    Field("current", "whether the newest has it") { $0.match.isCurrent }
  }
}
