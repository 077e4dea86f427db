internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import Reports
internal import Terminal

/// `carpack fleet status`: how a fleet stands.
struct FleetStatusCommand: ReportingCommand {
  static let page = ManualPage("status", PackageResources.fleet_status_txt, below: "carpack fleet")

  @OptionGroup var fleet: FleetArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let database = try fleet.fleet()
    let status = try runBlocking { try await database.status() }
    if json { printJSON(status) } else { printText(status) }
    let open = status.outcomes.contains { $0.name != "complete" }
    if open { throw ExitStatus.incomplete }
  }

  private func printText(_ status: FleetStatus) {
    let outcomes = status.outcomes.map { "\(Quantity.grouped($0.count)) \($0.name)" }
    let of = outcomes.isEmpty ? "" : ": \(outcomes.joined(separator: ", "))"
    Console.print("\(Quantity.count(status.accounts, "account"))\(of)")
    Console.print(
      "archives: \(Quantity.bytes(status.bytes)); in the last hour \(Quantity.count(status.hourly, "backup")), \(Quantity.bytes(status.hourlyBytes)) added"
    )
    Console.print("oldest backup: \(status.oldest ?? "not every active account has one")")
    let late = Quantity.duration(seconds: status.lateness)
    Console.print(
      "due: \(Quantity.grouped(status.due))\(status.due > 0 ? ", for up to \(late)" : ""); being worked on: \(Quantity.grouped(status.running))"
    )
    for state in status.states {
      Console.print("\(state.name): \(Quantity.count(state.count, "account")), kept")
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
      Console.print("broke off, and is tried again: \(source.url): \(source.reason)")
    }
    for worker in status.workers {
      Console.print(
        "worker \(worker.name), since \(worker.since): works on \(worker.running), \(Quantity.grouped(worker.ended)) done, \(Quantity.grouped(worker.failed)) failed"
      )
    }
    if status.workers.isEmpty { Console.print("no worker is at work") }
  }

  private func printJSON(_ status: FleetStatus) {
    var json = JSONWriter.ofResults
    json.begin(.fleetStatus)
    json.field("accounts", status.accounts)
    Self.write(status.outcomes, "outcomes", &json)
    Self.write(status.states, "states", &json)
    Self.write(status.reasons, "reasons", &json)
    json.field("due", status.due)
    json.field("lateSeconds", Int(status.lateness))
    json.field("running", status.running)
    json.field("oldestBackup", status.oldest)
    json.field("bytes", status.bytes)
    json.field("backupsLastHour", status.hourly)
    json.field("bytesLastHour", status.hourlyBytes)
    json.beginArray("failures")
    for failure in status.failures {
      json.beginObject()
      json.field("did", failure.did)
      json.field("reason", failure.reason)
      json.field("nextTry", failure.nextTry)
      json.endObject()
    }
    json.endArray()
    json.beginArray("sources")
    for source in status.sources {
      json.beginObject()
      json.field("url", source.url)
      json.field("reason", source.reason)
      json.endObject()
    }
    json.endArray()
    json.beginArray("workers")
    for worker in status.workers {
      json.beginObject()
      json.field("name", worker.name)
      json.field("since", worker.since)
      json.field("running", worker.running)
      json.field("ended", worker.ended)
      json.field("failed", worker.failed)
      json.endObject()
    }
    json.endArray()
    Console.finish(&json)
  }

  private static func write(_ counts: [FleetStatus.Count], _ name: String, _ json: inout JSONWriter)
  {
    json.beginArray(name)
    for count in counts {
      json.beginObject()
      json.field("name", count.name)
      json.field("accounts", count.count)
      json.field("nextTry", count.nextTry)
      json.endObject()
    }
    json.endArray()
  }
}
