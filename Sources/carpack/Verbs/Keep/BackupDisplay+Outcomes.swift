internal import ATProtocol
internal import HTTP
internal import Live
internal import Reports
internal import Snapshots
internal import Synchronization
internal import SystemPackage
internal import Terminal

/// Shows the result of each account as it ends, and of all accounts at the end.
extension BackupDisplay {
  /// What observes the run.
  var observer: MultiAccountBackup.Observer {
    (
      began: { [self] in begin($0.text) }, happened: { [self] in show($1, of: $0.text) },
      ended: { [self] in ended($0.text, $1) }
    )
  }

  /// How many entries that name no account are named one by one.
  private static var maximumMalformed: Int { 5 }

  /// The worst exit status of all.
  var status: ExitStatus { tally.withLock { $0.status } }

  /// Records the result of another part of the run.
  func note(_ status: ExitStatus) {
    tally.withLock { $0.status = .worst($0.status, status) }
  }

  /// Records an account that the server lists but does not serve: unless it was deleted, it is lost
  /// with the server.
  func skipped(_ did: DID, _ status: String) {
    tally.withLock { $0.counts.skippedCount += 1 }
    BackupEvents.skipped.tell((did, status))
    let sentence = "\(did): skipped: the server reports it as \(Excerpt.of(status))"
    guard status != ServerAccounts.deleted else { return common.say(sentence) }
    note(.incomplete)
    if !Console.isJSON {
      Console.say(
        .incomplete, "\(sentence); --admin-password-file backs it up as the server's operator")
    }
  }

  /// Records entries of a server's list that are not accounts.
  func malformed(_ entries: [String]) {
    let before = tally.withLock { tally in
      defer { tally.counts.malformedCount += entries.count }
      return tally.counts.malformedCount
    }
    note(.incomplete)
    for entry in entries.prefix(max(0, Self.maximumMalformed - before)) {
      BackupEvents.malformed.tell(entry)
      if !Console.isJSON {
        Console.say(.incomplete, "the server lists \"\(entry)\", which names no account")
      }
    }
  }

  /// Records that a server's list of accounts ended too early.
  func listEnded(_ failure: Failure) {
    note(failure.status)
    failure.say()
  }

  /// Records an argument or a line that is not an account.
  func failed(_ failure: Failure) {
    tally.withLock { $0.counts.failedCount += 1 }
    note(failure.status)
    failure.say()
  }

  /// Records the result of an account.
  func ended(_ account: String, _ outcome: MultiAccountBackup.Outcome) {
    end(account)
    switch outcome {
    case .success(let report):
      tally.withLock { $0.counts.add(report) }
      note(report.status)
      signHead(of: report, account)
      BackupEvents.finished.tell((account, report))
      guard !Console.isJSON else { return }
      if common.quiet {
        report.sayTrouble(isShort: !isSingle)
      } else {
        report.printSummary(isShort: !isSingle)
      }
    case .planned(let plan):
      tally.withLock { $0.counts.plannedCount += 1 }
      for warning in plan.warnings { warn(.warning, warning, of: account) }
      BackupEvents.plan.tell((account, plan))
      if !Console.isJSON { plan.print(isShort: !isSingle) }
    case .duplicate(let did):
      BackupEvents.duplicate.tell((account, did))
      common.say("\(account): same account as \(did), backed up once")
    case .failure(let error):
      // The interruption is reported once.
      if error is CancellationError, Interruption.received != nil { return }
      let failure = Failure(error)
      BackupEvents.failed.tell((account, failure))
      failed(isSingle ? failure : failure.of(account))
    }
  }

  /// Signs the head of an archive, if the user wants that; prints an error if it cannot.
  private func signHead(of report: BackupReport, _ account: String) {
    do {
      if let path = try signer?(report) { common.say("\(path): the archive's head, signed") }
    } catch {
      let failure = Failure(error)
      note(failure.status)
      (isSingle ? failure : failure.of(account)).say()
    }
  }

  /// Prints the overall result, if there were several.
  func finish() {
    guard !isSingle else { return }
    let counts = tally.withLock { $0.counts }
    BackupEvents.summary.tell(counts)
    guard !Console.isJSON, !common.quiet,
      let sentence = counts.sentence(after: ContinuousClock.now - begin)
    else { return }
    Console.print(sentence)
    if counts.incompleteCount > 0 {
      Console.say(
        "hint: \"carpack missing\" names what an archive lacks, \"carpack fill\" tries again")
    }
  }
}
