internal import ATProtocol
internal import HTTP
internal import Live
internal import Snapshots
internal import Synchronization

/// Shows how backups get on: live lines on a terminal, a line for each step where there is none, or
/// events as JSON, one a line.
final class BackupDisplay: Sendable {
  /// How it is shown.
  enum Style {
    /// Lines that change, one for each account that is being backed up.
    case live
    /// A line for each step.
    case plain
    /// JSON, one object a line, on standard output.
    case json
    /// Nothing but what went wrong.
    case silent
  }

  /// What is known of an account while it is being backed up.
  private struct Activity {
    var name: String
    var progress = BackupProgress(.resolving)
    var stageBegin: ContinuousClock.Instant = .now
    var said: ContinuousClock.Instant = .now
  }

  private struct State {
    var activities: [String: Activity] = [:]
    var order: [String] = []
    var retryCount = 0
    var missingCount = 0
    var arrivedCount = 0
    var wantLogin: [String] = []
    var waiting: (line: String, until: ContinuousClock.Instant)?
    var drawn: ContinuousClock.Instant?
  }

  private let style: Style
  /// Whether lines say whose they are.
  private let namesAccounts: Bool
  private let state = Mutex(State())
  private static let interval: Duration = .milliseconds(100)
  /// How many missing blobs are named one by one.
  private static let maximumTold = 20
  private static let plainInterval: Duration = .seconds(10)

  /// A display.
  init(_ style: Style, namesAccounts: Bool) {
    self.style = style
    self.namesAccounts = namesAccounts
  }

  /// Notes that an account's turn has come.
  func begin(_ account: String) {
    state.withLock { state in
      state.activities[account] = Activity(name: account)
      state.order.append(account)
    }
    BackupEvents.started.tell(account)
  }

  /// Notes that an account is done with.
  func end(_ account: String) {
    state.withLock { state in
      state.activities[account] = nil
      state.order.removeAll { $0 == account }
    }
    Console.endProgress()
  }

  /// Shows what happens to an account.
  func show(_ event: BackupEvent, of account: String) {
    tell(event, of: account)
    guard style != .json else { return }
    switch event {
    case .progress(let progress): show(progress, of: account)
    case .resolved(let did, let handle, let server):
      if let handle { state.withLock { $0.activities[account]?.name = handle.text } }
      say("\(did)\(handle.map { " (\($0))" } ?? "") at \(server)", of: account)
    case .repository(let records, let bytes, let isIncremental):
      say(
        "repository: \(Quantity.count(records, "record")), \(Quantity.bytes(bytes))\(isIncremental ? ", by what has changed" : "")",
        of: account)
    case .blobs(let referenced, let listed, let wanted):
      say(
        "blobs: \(Quantity.grouped(referenced)) referenced, \(listed.map { "\(Quantity.grouped($0)) listed" } ?? "not listed"), \(Quantity.grouped(wanted)) to fetch",
        of: account)
    case .missing(let entry, let answers):
      noteLogins(answers)
      guard countMissing() else { return }
      warn(.missing, "\(entry.cid): \(Self.text(answers))", of: account)
    case .arrived(let cid, let server, let answers):
      guard countArrived() else { return }
      let before = answers.isEmpty ? "" : " (\(Self.text(answers, namesOne: true)))"
      say("\(cid): came from \(server)\(before)", of: account, isResult: true)
    case .warning(let text): warn(.warning, text, of: account)
    }
  }

  private func tell(_ event: BackupEvent, of account: String) {
    switch event {
    case .resolved(let did, let handle, let server):
      BackupEvents.resolved.tell((account, (did, handle, server)))
    case .repository(let records, let bytes, let isIncremental):
      BackupEvents.repository.tell((account, (records, bytes, isIncremental)))
    case .blobs(let referenced, let listed, let wanted):
      BackupEvents.blobs.tell((account, (referenced, listed, wanted)))
    case .progress(let progress): BackupEvents.progress.printNow((account, progress))
    case .missing(let entry, let answers): BackupEvents.missing.tell((account, (entry, answers)))
    case .arrived(let cid, let server, let answers):
      BackupEvents.arrived.tell((account, (cid, server, answers)))
    case .warning(let text): BackupEvents.warning.tell((account, text))
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
      guard style != .json else { return }
      state.withLock { $0.retryCount += 1 }
    case .wait(let host, let seconds, let why):
      BackupEvents.wait.tell((host, seconds, why))
      guard style != .json, style != .silent, let line = event.waitingLine else { return }
      if style == .plain { Console.say(.note, line) }
      let lines = state.withLock { state in
        state.waiting = (line, until: .now + .seconds(seconds))
        return Self.lines(state, at: .now, namesAccounts: namesAccounts)
      }
      // Nothing arrives while it is waited, so nothing else would draw it.
      if style == .live { Console.showProgress(lines) }
    }
  }

  /// What servers say of a blob: of one server alone, which is named above, only what it says.
  private static func text(_ answers: [ServerAnswer], namesOne: Bool = false) -> String {
    if answers.count == 1, !namesOne { return answers[0].sentence }
    return answers.map { "\($0.server): \($0.sentence)" }.joined(separator: "; ")
  }

  /// Notes which servers may have given a blob to its owner.
  private func noteLogins(_ answers: [ServerAnswer]) {
    for answer in answers where answer.wantsLogin {
      state.withLock { state in
        if !state.wantLogin.contains(answer.server) { state.wantLogin.append(answer.server) }
      }
    }
  }

  /// The servers that may give missing blobs to the account's owner, in the order in which they
  /// said so.
  var serversThatWantLogin: [String] { state.withLock { $0.wantLogin } }

  /// Counts a blob that has come; answers whether it is to be told.
  private func countArrived() -> Bool {
    let count = state.withLock { state in
      state.arrivedCount += 1
      return state.arrivedCount
    }
    if count == Self.maximumTold + 1, style != .silent {
      Console.say("more blobs come; the summary counts them")
    }
    return count <= Self.maximumTold
  }

  /// Counts a blob that does not come; answers whether it is to be told.
  private func countMissing() -> Bool {
    let count = state.withLock { state in
      state.missingCount += 1
      return state.missingCount
    }
    if count == Self.maximumTold + 1 {
      Console.say(.missing, "more blobs; \"carpack missing\" will list them all")
    }
    return count <= Self.maximumTold
  }

  private func say(
    _ text: @autoclosure () -> String, of account: String, isResult: Bool = false
  ) {
    guard style == .plain || style == .live else { return }
    // Where lines change, steps show by themselves.
    if style == .plain || isResult { Console.say("\(prefix(account))\(text())") }
  }

  private func warn(_ mark: Mark, _ text: String, of account: String) {
    guard style != .json else { return }
    Console.say(mark, "\(prefix(account))\(text)")
  }

  private func prefix(_ account: String) -> String { namesAccounts ? "\(account): " : "" }

  private func show(_ progress: BackupProgress, of account: String) {
    let now = ContinuousClock.now
    let lines: [String]? = state.withLock { state in
      guard var activity = state.activities[account] else { return nil }
      if activity.progress.stage != progress.stage {
        activity.stageBegin = now
      }
      activity.progress = progress
      // Something arrives: of one account, from the host that was waited for.
      if !namesAccounts { state.waiting = nil }
      defer { state.activities[account] = activity }
      switch style {
      case .live:
        if let drawn = state.drawn, now - drawn < Self.interval { return nil }
        state.drawn = now
        state.activities[account] = activity
        return Self.lines(state, at: now, namesAccounts: namesAccounts)
      case .plain:
        guard now - activity.said >= Self.plainInterval else { return nil }
        activity.said = now
        return [prefix(account) + Self.text(activity, at: now)]
      case .json, .silent: return nil
      }
    }
    guard let lines else { return }
    if style == .live { Console.showProgress(lines) } else { lines.forEach(Console.say) }
  }

  /// The lines of all accounts that are being backed up, and one about what is waited for.
  private static func lines(
    _ state: State, at now: ContinuousClock.Instant, namesAccounts: Bool
  ) -> [String] {
    var lines = state.order.prefix(16).compactMap { state.activities[$0] }.map { activity in
      (namesAccounts ? "\(activity.name): " : "") + text(activity, at: now)
    }
    var notes: [String] = []
    if state.order.count > 16 { notes.append("and \(state.order.count - 16) more accounts") }
    if state.retryCount > 0 { notes.append(Quantity.count(state.retryCount, "retry", "retries")) }
    if let waiting = state.waiting, now < waiting.until { notes.append(waiting.line) }
    if !notes.isEmpty { lines.append("  " + notes.joined(separator: "; ")) }
    return lines
  }

  /// A line's words: the stage, how much is done of how much, how fast, how long still.
  private static func text(_ activity: Activity, at now: ContinuousClock.Instant) -> String {
    let progress = activity.progress
    let elapsed = now - activity.stageBegin
    let seconds =
      Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
    let rate = seconds > 0.2 ? Double(progress.bytes) / seconds : 0
    let speed = rate > 0 ? ", \(Quantity.bytes(UInt64(rate)))/s" : ""
    switch progress.stage {
    case .resolving: return "finding the account"
    case .privateData: return "private data"
    case .repository: return "repository \(Quantity.bytes(progress.bytes))\(speed)"
    case .checking: return "checking the repository"
    case .listing: return "listing blobs, \(Quantity.grouped(progress.blobsTotal)) so far"
    case .committing: return "committing"
    case .blobs:
      let settled = progress.blobsDone + progress.blobsFailed
      var text =
        "blobs \(Quantity.grouped(progress.blobsDone)) of \(Quantity.grouped(progress.blobsTotal)), \(Quantity.bytes(progress.bytes))\(speed)"
      if progress.blobsFailed > 0 { text += ", \(Quantity.grouped(progress.blobsFailed)) missing" }
      if seconds > 1, settled > 0, settled < progress.blobsTotal {
        let rest = Double(progress.blobsTotal - settled) * seconds / Double(settled)
        text += ", \(Quantity.duration(seconds: rest)) left"
      }
      return text
    }
  }
}
