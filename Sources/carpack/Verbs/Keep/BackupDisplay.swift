internal import ATProtocol
internal import HTTP
internal import Live
internal import Reports
internal import Snapshots
internal import Synchronization
internal import SystemPackage
internal import Terminal

/// Shows the progress and the results of the backups of one run: live lines on a terminal, a
/// line for each step where there is none, or events as JSON.
final class BackupDisplay: Sendable {
  private struct State {
    var activities: [BackupActivity] = []
    var retryCount = 0
    var missingCount = 0
    var arrivedCount = 0
    var wantLogin: [String] = []
    var waiting: (line: String, until: ContinuousClock.Instant)?
    var drawn: ContinuousClock.Instant?
  }

  let common: CommonOptions
  /// Whether there is one account, whose name no line needs.
  let isSingle: Bool
  /// Signs what a backup has committed, if the user wants that; returns where the statement is.
  let signer: (@Sendable (BackupReport) throws -> FilePath?)?
  let begin = ContinuousClock.now
  /// How many accounts had each result, and the worst exit status.
  let tally = Mutex((counts: BackupTally(), status: ExitStatus.success))
  /// Whether lines change, one for each account that is being backed up.
  private let isLive: Bool
  private let state = Mutex(State())
  private static let interval: Duration = .milliseconds(100)
  private static let plainInterval: Duration = .seconds(10)
  private static let maximumLines = 16

  init(
    _ options: BackupOptions, isSingle: Bool,
    signer: (@Sendable (BackupReport) throws -> FilePath?)? = nil
  ) {
    (common, self.isSingle, self.signer) = (options.common, isSingle, signer)
    isLive =
      Console.canRedraw && !Console.isJSON && !options.common.quiet && !options.network.verbose
  }

  /// Records that the backup of an account has begun.
  func begin(_ account: String) {
    state.withLock { $0.activities.append(BackupActivity(account)) }
    BackupEvents.started.tell(account)
  }

  /// Records that the backup of an account has ended.
  func end(_ account: String) {
    state.withLock { state in state.activities.removeAll { $0.account == account } }
    Console.endProgress()
  }

  /// Shows what happens to an account.
  func show(_ event: BackupEvent, of account: String) {
    switch event {
    case .progress(let progress):
      BackupEvents.progress.printIfWanted((account, progress))
      show(progress, of: account)
    case .resolved(let did, let handle, let server):
      BackupEvents.resolved.tell((account, (did, handle, server)))
      if let handle {
        state.withLock { state in
          let place = state.activities.firstIndex { $0.account == account }
          if let place { state.activities[place].name = handle.text }
        }
      }
      step("\(did)\(handle.map { " (\($0))" } ?? "") at \(server)", of: account)
    case .repository(let records, let bytes, let isIncremental):
      BackupEvents.repository.tell((account, (records, bytes, isIncremental)))
      step(
        "repository: \(Quantity.count(records, "record")), \(Quantity.bytes(bytes))\(isIncremental ? ", incremental" : "")",
        of: account)
    case .blobs(let referenced, let listed, let wanted):
      BackupEvents.blobs.tell((account, (referenced, listed, wanted)))
      step(
        "blobs: \(Quantity.grouped(referenced)) referenced, \(listed.map { "\(Quantity.grouped($0)) listed, " } ?? "")\(Quantity.grouped(wanted)) to fetch",
        of: account)
    case .missing(let entry, let answers):
      BackupEvents.missing.tell((account, (entry, answers)))
      guard !Console.isJSON else { return }
      noteLogins(answers)
      let isTold = isTold(\.missingCount) {
        Console.say(.missing, "more blobs; \"carpack missing\" will list them all")
      }
      if isTold { warn(.missing, "\(entry.cid): \(Self.text(answers))", of: account) }
    case .arrived(let cid, let server, let answers):
      BackupEvents.arrived.tell((account, (cid, server, answers)))
      let isTold = isTold(\.arrivedCount) {
        common.say("more blobs arrived; the summary counts them")
      }
      let before = answers.isEmpty ? "" : " (\(Self.text(answers, namesOne: true)))"
      if isTold { common.say("\(prefix(account))\(cid): came from \(server)\(before)") }
    case .warning(let text):
      BackupEvents.warning.tell((account, text))
      warn(.warning, text, of: account)
    }
  }

  /// Shows what happens on the network.
  func show(_ event: NetworkEvent) {
    switch event {
    case .request: return
    case .proxy(let proxy):
      BackupEvents.warning.tell((nil, NetworkCommandOptions.proxyWarning(proxy)))
    case .retry(let host, let seconds, let why):
      BackupEvents.retry.tell((host, seconds, why))
      state.withLock { $0.retryCount += 1 }
    case .wait(let host, let seconds, let why):
      BackupEvents.wait.tell((host, seconds, why))
      guard let line = event.waitingLine, !Console.isJSON else { return }
      guard isLive else { return common.say(.note, line) }
      let lines = state.withLock { state in
        state.waiting = (line, until: .now + .seconds(seconds))
        return self.lines(state, at: .now)
      }
      // Nothing arrives while it is waited, so nothing else would draw it.
      Console.showProgress(lines)
    }
  }

  /// What servers say of a blob: of one server alone, which is named above, only what it says.
  private static func text(_ answers: [ServerAnswer], namesOne: Bool = false) -> String {
    if answers.count == 1, !namesOne { return answers[0].sentence }
    return answers.map { "\($0.server): \($0.sentence)" }.joined(separator: "; ")
  }

  /// Records which servers may give a blob to the account's owner.
  private func noteLogins(_ answers: [ServerAnswer]) {
    state.withLock { state in
      for answer in answers where answer.wantsLogin && !state.wantLogin.contains(answer.server) {
        state.wantLogin.append(answer.server)
      }
    }
  }

  /// The servers that may give missing blobs to the account's owner, in the order in which they
  /// said so.
  var serversThatWantLogin: [String] { state.withLock { $0.wantLogin } }

  /// Counts one of many; returns whether it is one of the first, which are printed one by one.
  ///
  /// After those, `more` says once that there are more.
  private func isTold(_ count: WritableKeyPath<State, Int>, more: () -> Void) -> Bool {
    let number = state.withLock { state in
      state[keyPath: count] += 1
      return state[keyPath: count]
    }
    if number == Console.maximumTold + 1 { more() }
    return number <= Console.maximumTold
  }

  /// Prints a step, unless live lines show it.
  private func step(_ text: @autoclosure () -> String, of account: String) {
    if !isLive { common.say("\(prefix(account))\(text())") }
  }

  func warn(_ mark: Mark, _ text: String, of account: String) {
    if !Console.isJSON { Console.say(mark, "\(prefix(account))\(text)") }
  }

  private func prefix(_ account: String) -> String { isSingle ? "" : "\(account): " }

  private func show(_ progress: BackupProgress, of account: String) {
    let now = ContinuousClock.now
    let lines: [String] = state.withLock { state in
      guard let place = state.activities.firstIndex(where: { $0.account == account }) else {
        return []
      }
      state.activities[place].note(progress, at: now)
      // Something arrives: of one account, from the host that was waited for.
      if isSingle { state.waiting = nil }
      guard isLive else {
        guard now - state.activities[place].said >= Self.plainInterval else { return [] }
        state.activities[place].said = now
        return ["\(prefix(account))\(state.activities[place].text(at: now))"]
      }
      if let drawn = state.drawn, now - drawn < Self.interval { return [] }
      state.drawn = now
      return self.lines(state, at: now)
    }
    if isLive, !lines.isEmpty {
      Console.showProgress(lines)
    } else {
      lines.forEach { common.say($0) }
    }
  }

  /// The lines of all accounts that are being backed up, and one about what is waited for.
  private func lines(_ state: State, at now: ContinuousClock.Instant) -> [String] {
    var lines = state.activities.prefix(Self.maximumLines).map { activity in
      (isSingle ? "" : "\(activity.name): ") + activity.text(at: now)
    }
    var notes: [String] = []
    let more = state.activities.count - Self.maximumLines
    if more > 0 { notes.append("and \(Quantity.count(more, "more account"))") }
    if state.retryCount > 0 { notes.append(Quantity.count(state.retryCount, "retry", "retries")) }
    if let waiting = state.waiting, now < waiting.until { notes.append(waiting.line) }
    if !notes.isEmpty { lines.append("  " + notes.joined(separator: "; ")) }
    return lines
  }
}
