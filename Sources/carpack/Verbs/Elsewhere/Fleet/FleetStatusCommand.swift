internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import Reports
internal import Terminal

/// `carpack fleet status`: the state of a fleet.
struct FleetStatusCommand: ReportingCommand {
  static let page = ManualPage("status", PackageResources.fleet_status_txt)

  @OptionGroup var fleet: FleetArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let status = try fleet.ask { try await $0.status() }
    if json { Self.report.print(status) } else { printText(status) }
    if !status.alarms.isEmpty || status.outcomes.contains(where: { $0.name != "complete" }) {
      throw ExitStatus.incomplete
    }
  }

  private func printText(_ status: FleetStatus) {
    let outcomes = status.outcomes.map { "\(Quantity.grouped($0.count)) \($0.name)" }
    let of = outcomes.isEmpty ? "" : ": \(outcomes.joined(separator: ", "))"
    Console.print("\(Quantity.count(status.accounts, "account"))\(of)")
    Console.print(
      "archives: \(Quantity.bytes(status.bytes)); in the last hour \(Quantity.count(status.hourly, "backup")), \(Quantity.count(status.hourlyFailed, "failure")), \(Quantity.bytes(status.hourlyBytes)) added"
    )
    if !status.outcomes.isEmpty {
      Console.print("oldest backup: \(status.oldest ?? "not every active account has one")")
    }
    let late = Quantity.duration(seconds: status.lateness)
    Console.print(
      "due: \(Quantity.grouped(status.due))\(status.due > 0 ? ", for up to \(late)" : ""); being worked on: \(Quantity.grouped(status.running))"
    )
    for alarm in status.alarms {
      Console.print(
        "ALARM: \(alarm.url): \(alarm.reason): none of its archives is removed until \"carpack fleet resume --host \(alarm.url)\""
      )
    }
    for state in status.states {
      Console.print("\(state.name): \(Quantity.count(state.count, "account"))")
    }
    for reason in status.reasons {
      let next = reason.nextTry.map { ", next try \($0)" } ?? ""
      Console.print("why: \(reason.name): \(Quantity.count(reason.count, "account"))\(next)")
    }
    for failure in status.failures {
      let next = failure.nextTry.map { "; next try \($0)" } ?? ""
      Console.print("  \(failure.did): \(failure.reason)\(next)")
    }
    for source in status.sources {
      Console.print("waiting, or interrupted and retried: \(source.url): \(source.reason)")
    }
    for worker in status.workers {
      let silence = worker.silentSeconds.map { seconds in
        "; no sign of life for \(Quantity.duration(seconds: Double(seconds))): killed or cut off, others take over when its lease ends"
      }
      Console.print(
        "worker \(worker.name), since \(worker.since): works on \(worker.running), \(Quantity.grouped(worker.ended)) done, \(Quantity.grouped(worker.failed)) failed\(silence ?? "")"
      )
    }
    for worker in status.lostWorkers {
      Console.print(
        "worker \(worker.name), since \(worker.since): killed or cut off, its lease ended at \(worker.until); \(Quantity.grouped(worker.ended)) done"
      )
    }
    if status.workers.isEmpty { Console.print("no worker is running") }
  }

  private static let counts = Fields<FleetStatus.Count> {
    Field("name", "what these accounts have in common") { $0.name }
    Field("accounts", "how many") { $0.count }
    Field("nextTry", "when the first of them is tried again", .time) { $0.nextTry }
  }

  private static let failure = Fields<FleetStatus.Failure> {
    Field("did", "the account", .did) { $0.did }
    Field("reason", "why") { $0.reason }
    Field("nextTry", "when it is tried again", .time) { $0.nextTry }
  }

  private static let source = Fields<FleetStatus.Source> {
    Field("url", "its address") { $0.url }
    Field("reason", "why") { $0.reason }
  }

  private static let worker = Fields<FleetStatus.Worker> {
    Field("name", "its name") { $0.name }
    Field("since", "when it started", .time) { $0.since }
    Field("running", "accounts it works on") { $0.running }
    Field("ended", "backups it has ended") { $0.ended }
    Field("failed", "those that failed") { $0.failed }
    Field(
      "silentSeconds",
      "seconds without a sign of life, if more than 30: it was killed or cut off; else null"
    ) { $0.silentSeconds }
  }

  private static let lostWorker = Fields<FleetStatus.LostWorker> {
    Field("name", "its name") { $0.name }
    Field("since", "when it started", .time) { $0.since }
    Field("until", "when its lease expired", .time) { $0.until }
    Field("ended", "backups it had ended") { $0.ended }
  }

  static let report = Report<FleetStatus>("fleet-status", "`carpack fleet status`.") {
    Field("accounts", "all accounts") { $0.accounts }
    Field(
      "outcomes",
      "active accounts by the result of the last backup: `complete`, `incomplete`, `failed`, `never`",
      each: { $0.outcomes }, as: counts)
    Field(
      "states", "accounts that are not active, by what they are", each: { $0.states }, as: counts)
    Field(
      "reasons", "active accounts that are not complete, by the cause", each: { $0.reasons },
      as: counts)
    Field("due", "accounts that are due and that no worker has taken") { $0.due }
    Field("lateSeconds", "for how long the first of them has been due") { Int($0.lateness) }
    Field("running", "accounts that are worked on") { $0.running }
    Field(
      "oldestBackup",
      "the last backup of the active account that has waited longest; null if one was never backed up",
      .time
    ) { $0.oldest }
    Field("bytes", "bytes of all archives") { $0.bytes }
    Field("backupsLastHour", "accounts backed up in the last hour, completely or not") { $0.hourly }
    Field("failuresLastHour", "accounts whose last try in that hour failed") { $0.hourlyFailed }
    Field("bytesLastHour", "bytes that they added") { $0.hourlyBytes }
    Field("failures", "the newest failures, twenty at most", each: { $0.failures }, as: failure)
    Field(
      "sources",
      "hosts and firehoses that wait or are retried after an interruption, and firehoses that have lost events",
      each: { $0.sources }, as: source)
    Field(
      "alarms",
      "hosts whose lost accounts an operator has to look at; none of their archives is removed",
      each: { $0.alarms }, as: source)
    Field("workers", "workers whose lease has not expired", each: { $0.workers }, as: worker)
    Field(
      "lostWorkers", "workers that were killed or cut off, and whose lease expired within an hour",
      each: { $0.lostWorkers }, as: lostWorker)
  }
}
