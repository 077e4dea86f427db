internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Reports
internal import Snapshots
internal import Terminal

/// `carpack diff`: what changed between two snapshots of an account.
struct DiffCommand: ReportingCommand {
  static let page = ManualPage("diff", PackageResources.diff_txt)

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
