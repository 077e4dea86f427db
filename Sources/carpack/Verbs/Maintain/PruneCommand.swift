internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Copying
internal import Files
internal import IPLD
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack prune`: forgets snapshots by a policy.
struct PruneCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("prune", PackageResources.prune_txt)

  private static let rules = [
    "keep-last", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly",
  ]
  static let settings = rules.map { Setting(name: $0, kind: .text, rivals: rules) }

  @Option(help: ArgumentHelp("Keep the last n snapshots.", valueName: "n"))
  var keepLast: Int?

  @Option(help: ArgumentHelp("Keep one a day, for n days.", valueName: "n"))
  var keepDaily: Int?

  @Option(help: ArgumentHelp("Keep one a week, for n weeks.", valueName: "n"))
  var keepWeekly: Int?

  @Option(help: ArgumentHelp("Keep one a month, for n months.", valueName: "n"))
  var keepMonthly: Int?

  @Option(help: ArgumentHelp("Keep one a year, for n years.", valueName: "n"))
  var keepYearly: Int?

  @Option(
    help: ArgumentHelp(
      "Forget the snapshot with this number, whatever the rules say (repeatable).", valueName: "n"))
  var forget: [Int] = []

  @Flag(help: "Show what would be kept and forgotten; change nothing.")
  var dryRun = false

  @OptionGroup var archives: ChangedArchives

  @OptionGroup var accountOption: AccountOption

  @OptionGroup var reporting: ReportOptions

  /// How many each rule keeps, as far as there are rules.
  private var counts: [Int] {
    [keepLast, keepDaily, keepWeekly, keepMonthly, keepYearly].compactMap(\.self)
  }

  func validate() throws {
    guard !counts.isEmpty || !forget.isEmpty else {
      throw ValidationError(
        "nothing to do: use --keep-last, --keep-daily, … to keep, or --forget to forget")
    }
    guard counts.allSatisfy({ $0 > 0 }) else {
      throw ValidationError("the number of snapshots to keep must be 1 or more")
    }
  }

  func run() throws {
    let policy = RetentionPolicy(
      last: keepLast ?? 0, daily: keepDaily ?? 0, weekly: keepWeekly ?? 0,
      monthly: keepMonthly ?? 0, yearly: keepYearly ?? 0, keepsAll: counts.isEmpty,
      now: Moment(Host.now))
    let account: (SnapshotHistory) throws -> DID? = { try $0.account(accountOption.account) }
    try archives.each(common) { file in
      let report =
        try dryRun
        ? policy.plan(
          MappedFile(FilePath(file)).refusingFurtherArchives {
            try ArchiveReader(path: FilePath(file))
          }, name: file, forgetting: Set(forget), account: account)
        : policy.prune(
          FileStorage.openArchive(FilePath(file)), name: file, forgetting: Set(forget),
          account: account)
      if json { Self.report.print((file, dryRun, report)) } else { printText(report, file) }
      try end(with: report.lost, of: file)
    }
  }

  private func printText(_ report: RetentionPolicy.Report, _ file: String) {
    let verdicts = report.plan.verdicts
    if dryRun {
      if archives.files.count > 1 { Console.print("\(file):") }
      Table.print(
        [
          ("number", .right), ("made", .left), ("account", .left), ("revision", .left), ("", .left),
        ],
        verdicts.reversed().map { entry, reasons, isMisdated in
          let decision =
            reasons.isEmpty
            ? "forgotten" : "kept: \(Self.words(reasons).joined(separator: ", "))"
          return [
            "\(entry.number)", entry.createdAt, entry.name, entry.rev?.text ?? "-",
            decision + (isMisdated ? " (its time is wrong, so no rule counts it)" : ""),
          ]
        })
    }
    for entry in report.plan.lastComplete {
      common.say(
        .warning,
        "\(file): only snapshot \(entry.number) of \(entry.handle?.text ?? entry.did.text), which is forgotten, has all records"
      )
    }
    let forgotten = report.plan.forgottenCount
    let kept = "\(Quantity.count(verdicts.count - forgotten, "snapshot")) kept"
    let change =
      forgotten == 0
      ? "nothing to forget"
      : "\(Quantity.grouped(forgotten)) "
        + (dryRun ? "would be forgotten" : "forgotten, \(Quantity.bytes(report.bytesAdded)) added")
    common.say("\(file): \(kept), \(change)")
    let misdated = verdicts.filter { $0.reasons.isEmpty && $0.isMisdated }.map(\.entry)
    if let first = misdated.first {
      common.say(
        "  \(Quantity.grouped(misdated.count)) of them with a wrong time, such as snapshot \(first.number), made \(first.createdAt)"
      )
    }
    if forgotten > 0 {
      common.say("  their data stays in the file until \"carpack compact\" removes it for good")
    }
  }

  /// The rules that keep a snapshot, in the order of the options.
  private static func words(_ reasons: Set<RetentionPolicy.Reason>) -> [String] {
    RetentionPolicy.Reason.allCases.filter(reasons.contains).map(\.rawValue)
  }

  static let report = Report<(file: String, isDryRun: Bool, all: RetentionPolicy.Report)>(
    "prune", "`carpack prune`."
  ) {
    ArchiveFields.file { $0.file }
    Field("dryRun", "whether nothing was changed") { $0.isDryRun }
    Field("forgotten", "snapshots forgotten") { $0.all.plan.forgottenCount }
    Field("bytes", "the size of the archive") { $0.all.generation.committedLength }
    Field("bytesAdded", "by how many bytes it grew") { $0.all.bytesAdded }
    ArchiveFields.head { $0.all.generation.head?.cid }
    ArchiveFields.lost { $0.all.lost }
    Field(
      "snapshots", "all snapshots, the oldest first", each: { $0.all.plan.verdicts },
      as: Fields {
        Field("number", "its number") { $0.entry.number }
        Field("manifest", "its manifest") { $0.entry.cid }
        Field("did", "the account") { $0.entry.did }
        Field("rev", "its revision") { $0.entry.rev?.text }
        Field("createdAt", "when it was made") { $0.entry.createdAt }
        Field("kept", "whether it is kept") { !$0.reasons.isEmpty }
        Field("reasons", "the rules that keep it") { words($0.reasons) }
        Field(
          "misdated",
          "whether its time is after now or contradicts those of the others, so that no rule counts it"
        ) { $0.isMisdated }
      })
  }
}
