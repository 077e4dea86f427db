internal import ATProtocol
internal import Live
internal import Snapshots
internal import Synchronization

/// What came of the accounts of one run, said of each as it ends and of all at the end.
final class BackupOutcomes: Sendable {
  /// How many accounts came to what.
  struct Tally {
    var counts: [BackupReport.Outcome: Int] = [:]
    var failedCount = 0
    var plannedCount = 0
    var skippedCount = 0
    var malformedCount = 0
    var recentIncompleteCount = 0
    var bytesAdded: UInt64 = 0
    var statuses: Set<CInt> = []

    subscript(outcome: BackupReport.Outcome) -> Int { counts[outcome] ?? 0 }
  }

  private let display: BackupDisplay
  private let isJSON: Bool
  private let isQuiet: Bool
  private let isSingle: Bool
  private let signer: HeadSigner?
  private let begin = ContinuousClock.now
  private let state = Mutex(Tally())

  init(
    _ display: BackupDisplay, _ options: BackupOptions, isSingle: Bool, signer: HeadSigner? = nil
  ) {
    self.signer = signer
    self.display = display
    isJSON = options.json
    isQuiet = options.common.quiet
    self.isSingle = isSingle
  }

  /// What observes the run.
  var observer: MultiAccountBackup.Observer {
    (
      began: { [display] in display.begin($0.text) },
      happened: { [display] in display.show($1, of: $0.text) },
      ended: { [self] in ended($0.text, $1) }
    )
  }

  /// Notes an account that the server lists and does not give out.
  func skipped(_ did: DID, _ state: String) {
    self.state.withLock { $0.skippedCount += 1 }
    BackupEvents.skipped.tell((did, state))
    if !isJSON, !isQuiet {
      Console.say("\(did): skipped, for the server calls it \(state)")
    }
  }

  /// Records that something else than an account was named.
  func failed(_ failure: Failure) {
    state.withLock { state in
      state.failedCount += 1
      state.statuses.insert(failure.status.number)
    }
    failure.say()
  }

  /// Records what came of something else that was asked for.
  func note(_ status: ExitStatus) { state.withLock { _ = $0.statuses.insert(status.number) } }

  /// How many entries that name no account are named one by one.
  private static let maximumMalformed = 5

  /// Records entries of a server's list that name no account: the run is then incomplete.
  func malformed(_ entries: [String]) {
    let before = state.withLock { state in
      defer { state.malformedCount += entries.count }
      state.statuses.insert(ExitStatus.incomplete.number)
      return state.malformedCount
    }
    for entry in entries.prefix(max(0, Self.maximumMalformed - before)) {
      BackupEvents.malformed.tell(entry)
      if !isJSON {
        Console.say(
          .incomplete, "the server lists \"\(entry)\", which names no account"
        )
      }
    }
  }

  /// The worst of all.
  var status: ExitStatus {
    .worst(state.withLock { $0.statuses }.map(ExitStatus.init(number:)))
  }

  /// What a backup comes to, but for damage.
  private static func status(of report: BackupReport) -> ExitStatus {
    guard !report.snapshot.isSettled else {
      return report.lacksPrivateData ? .incomplete : .success
    }
    // A list that broke off and may come next time is worth another run.
    return report.snapshot.blobs.listFault?.isTransient == true ? .temporary : .incomplete
  }

  /// Notes what came of an account.
  func ended(_ account: String, _ outcome: MultiAccountBackup.Outcome) {
    display.end(account)
    switch outcome {
    case .success(let report):
      state.withLock { state in
        state.counts[report.outcome, default: 0] += 1
        if report.outcome == .recent, !report.snapshot.isSettled {
          state.recentIncompleteCount += 1
        }
        state.bytesAdded += report.bytesAdded
        state.statuses.insert(Self.status(of: report).number)
        if !report.snapshot.standing.grave.isEmpty {
          state.statuses.insert(ExitStatus.notGenuine.number)
        }
        if !report.damage.isNone { state.statuses.insert(ExitStatus.damaged.number) }
      }
      signHead(of: report, account)
      BackupEvents.finished.tell((account, report))
      if !isJSON {
        let summary = BackupSummary(report)
        if isQuiet { summary.sayTrouble() } else { summary.print(isShort: !isSingle) }
      }
    case .planned(let plan):
      state.withLock { $0.plannedCount += 1 }
      for warning in plan.warnings where !isJSON {
        Console.say(.warning, "\(isSingle ? "" : "\(account): ")\(warning)")
      }
      let summary = BackupPlanSummary(plan)
      BackupEvents.plan.tell((account, plan))
      if !isJSON { summary.print(isShort: !isSingle) }
    case .duplicate(let did):
      BackupEvents.duplicate.tell((account, did))
      if !isJSON, !isQuiet {
        Console.say("\(account): same account as \(did), backed up once")
      }
    case .failure(let error):
      // That the run was interrupted is said once.
      if error is CancellationError, Interruption.received != nil { return }
      let failure = Failure(error)
      state.withLock { state in
        state.failedCount += 1
        state.statuses.insert(failure.status.number)
      }
      BackupEvents.failed.tell((account, failure))
      (isSingle ? failure : failure.of(account)).say()
    }
  }

  /// Signs the head of an archive, if that is wanted; that it cannot be is said.
  private func signHead(of report: BackupReport, _ account: String) {
    guard let signer else { return }
    do {
      if let path = try signer.sign(report), !isJSON, !isQuiet {
        Console.say("\(path): the archive's head, signed")
      }
    } catch {
      let failure = Failure(error)
      note(failure.status)
      (isSingle ? failure : failure.of(account)).say()
    }
  }

  /// Says what came of all, if there were several.
  func finish() {
    guard !isSingle else { return }
    let state = state.withLock { $0 }
    let elapsed = (ContinuousClock.now - begin).components.seconds
    BackupEvents.summary.tell(state)
    guard !isJSON, !isQuiet else { return }
    let total = state.counts.values.reduce(state.failedCount + state.plannedCount, +)
    // Nothing came to an end: that it was interrupted is said already.
    guard total + state.skippedCount + state.malformedCount > 0 else { return }
    let parts: [(Int, String)] = [
      (state.counts[.complete] ?? 0, "complete"), (state.counts[.upToDate] ?? 0, "up to date"),
      ((state.counts[.recent] ?? 0) - state.recentIncompleteCount, "recent"),
      (state.recentIncompleteCount, "recent and incomplete"),
      (state.counts[.incomplete] ?? 0, "incomplete"), (state.plannedCount, "planned"),
      (state.failedCount, "failed"),
      (state.skippedCount, "skipped"), (state.malformedCount, "malformed in the list"),
    ]
    let words = parts.filter { $0.0 > 0 }.map { "\(Quantity.grouped($0.0)) \($0.1)" }
    Console.print(
      "\(Quantity.count(total, "account")): \(words.joined(separator: ", ")); \(Quantity.bytes(state.bytesAdded)) added in \(Quantity.duration(seconds: Double(elapsed)))"
    )
    if (state.counts[.incomplete] ?? 0) + state.recentIncompleteCount > 0 {
      Console.say(
        "hint: \"carpack missing\" names what an archive lacks, \"carpack fill\" tries again")
    }
  }
}
