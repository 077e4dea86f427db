internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import Reports
internal import Terminal

/// `carpack fleet history`: the last results of an account.
struct FleetHistoryCommand: ReportingCommand {
  static let page = ManualPage("history", PackageResources.fleet_history_txt)

  @Argument(help: ArgumentHelp("The account: a handle or a DID.", valueName: "account"))
  var account: String

  @OptionGroup var fleet: FleetArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let account = try ATIdentifier(account: account)
    let attempts = try fleet.ask { database in
      let (dids, failures) = try await FleetAccounts.resolve([account], StoreArguments.network())
      guard let did = dids.first else { throw failures[0] }
      guard let attempts = try await database.history(of: did) else {
        throw Failure(
          "\(did) is not in the fleet", hint: "\"carpack fleet add \(did)\" adds it",
          status: .noInput)
      }
      return attempts
    }
    for attempt in attempts {
      if json { Self.report.print(attempt) } else { Self.print(attempt) }
    }
    if attempts.isEmpty { common.say("it was never backed up") }
  }

  private static func print(_ attempt: FleetAttempt) {
    let state = attempt.state == "active" ? "" : " (\(attempt.state))"
    let added = attempt.added > 0 ? ", \(Quantity.bytes(attempt.added)) added" : ""
    let worker = attempt.worker.map { ", by \($0)" } ?? ""
    let reason = attempt.reason.map { ": \($0)" } ?? ""
    Console.print("\(attempt.ended): \(attempt.outcome)\(state)\(added)\(worker)\(reason)")
  }

  static let report = Report<FleetAttempt>(
    "fleet-history", "`carpack fleet history`: a result a line, the newest first."
  ) {
    Field("ended", "when the backup ended", .time) { $0.ended }
    Field("outcome", "the result", .one(of: FleetOutcome.Verdict.self)) { $0.outcome }
    Field("state", "the account's state then", .one(of: FleetOutcome.State.self)) { $0.state }
    Field("cause", "why it is not complete, as one word") { $0.cause }
    Field("reason", "the same in full") { $0.reason }
    Field("bytesAdded", "bytes that were added to the archive") { $0.added }
    Field("worker", "which worker; null for \"carpack fleet check\"") { $0.worker }
  }
}
