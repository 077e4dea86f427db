internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Reports
internal import Snapshots
internal import Terminal

/// `carpack diff`: what changed between two snapshots of an account.
struct DiffCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    _superCommandName: Carpack.name,
    abstract: "Say what changed between two snapshots: records, and the blobs they refer to.",
    usage: "carpack diff [<options>] <archive> [<snapshot>] [<snapshot>]",
    discussion: Help.discussion(
      """
      Without a SNAPSHOT, what the newest changed, compared with the one before it of the same account; with one, what has changed since; with two, what changed from the first to the second. Both are chosen as with --at of the other verbs: by number ("carpack log" lists them; -1 is the newest), date, revision, CID, or "latest".

      A line for each record that was created (+), is another (~) or was deleted (-), in the order of their paths; then one for each blob that came (+) or went (-), which is one that no record of the other snapshot refers to, in the order of their CIDs; then the sum. A blob that went is in the archive as before. What is not there is marked [missing].

      With --json one object a line. "kind" is "record" ("change": "created", "updated" or "deleted"; "path"; "old" and "new": the CIDs, or null), "blob" ("change": "added" or "gone"; "cid"; "path" of the first record that refers to it; "type"; "size"; "state": "held", "missing" or "damaged"), or at last "summary" ("account", "old" and "new" snapshot, and the counts).

      Exit status: 0 whether there are differences or not; 10 if records are missing that may have referred to blobs, or tree nodes; 11 if something is damaged; 66 if there is no such snapshot.
      """,
      examples: [
        "carpack diff alice.example.com.car.zst",
        "carpack diff alice.example.com.car.zst 2026-01-01",
        "carpack diff alice.example.com.car.zst -2 -1 --json",
      ]))

  @OptionGroup var archive: ArchiveArgument

  // Not only words: -1 is the newest.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp(
      "One snapshot, or two: number, date, revision or CID.", valueName: "snapshot"))
  var snapshots: [String] = []

  @OptionGroup var accountOption: AccountOption

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if let option = snapshots.first(where: { $0.hasPrefix("-") && Int($0) == nil }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    if snapshots.count > 2 {
      throw ValidationError("two snapshots are compared, and \(snapshots.count) were given")
    }
  }

  func run() throws {
    if let file = snapshots.first(where: { $0.hasSuffix(".car.zst") }) {
      throw Failure(
        "diff compares two snapshots of one archive: \(file) is a second archive",
        hint:
          "\"carpack merge \(archive.file) \(file) -o NEW\" puts the snapshots of both into one",
        status: .usage)
    }
    try archive.read(compare)
  }

  private func compare(_ opened: OpenedArchive) throws {
    let selectors = try snapshots.map { text throws in try SnapshotSelector(text) }
    let pair = try SnapshotPair(opened, selectors, account: accountOption.account)
    let (old, new) = (
      try opened.snapshot(pair.old), try opened.snapshot(pair.new)
    )
    var listing = DiffListing(pair, isJSON: json)
    let diff: SnapshotDiff
    do {
      diff = try SnapshotDiff.compare(
        old, new, visit: { listing.add($0) },
        observer: ProgressLine.observer(quiet: common.quiet))
    } catch let error as MSTDiffError
      where error.problem.kind == .missing
      && !(error.side == .old ? old : new).snapshot.isComplete
    {
      // It was not in the CAR in the first place: nothing has been damaged since.
      throw Failure(
        "\(error)", hint: "its CAR was incomplete when it was packed", status: .incomplete)
    }
    try listing.add(diff, old: old, new: new)
    for gap in diff.gaps {
      let side = gap.side == .old ? "old" : "new"
      Console.say(
        gap.isDamage ? .damaged : .incomplete,
        "\(opened.name): in the \(side) snapshot \(gap.what)")
    }
    if diff.gapCount > diff.gaps.count {
      Console.say(
        .incomplete, "and \(Quantity.grouped(diff.gapCount - diff.gaps.count)) more like these")
    }
    let status = ExitStatus.worst(
      listing.worst, opened.status, diff.gapCount == 0 ? .success : .incomplete,
      diff.gaps.contains(where: \.isDamage) ? .damaged : .success)
    if status != .success { throw status }
  }
}

/// The two snapshots that are compared.
struct SnapshotPair {
  let old: SnapshotHistory.Entry
  let new: SnapshotHistory.Entry
  /// What people call the account.
  let account: String

  /// The snapshots that are meant: none is the newest and the one before it; one is that one and
  /// the newest of its account; two are these.
  init(_ opened: OpenedArchive, _ selectors: [SnapshotSelector], account: String?) throws {
    let history = try opened.usableHistory()
    let did = try history.account(account)
    guard let first = selectors.first else {
      guard let newest = history.entries.last(where: { did == nil || $0.did == did }) else {
        throw SnapshotError.noSnapshot
      }
      let before = history.entries.last { $0.did == newest.did && $0.number < newest.number }
      guard let before else {
        throw Failure(
          "of \(history.name(of: newest.did)) there is one snapshot only, and none to compare it with",
          hint: "\"carpack log\" lists the snapshots", status: .noInput)
      }
      self.init(before, newest, history)
      return
    }
    let old = try history.selectOne(first, of: did)
    self.init(
      old, try history.selectOne(selectors.dropFirst().first ?? .latest, of: old.did), history)
  }

  private init(
    _ old: SnapshotHistory.Entry, _ new: SnapshotHistory.Entry, _ history: SnapshotHistory
  ) {
    self.old = old
    self.new = new
    account = history.name(of: new.did)
  }
}
