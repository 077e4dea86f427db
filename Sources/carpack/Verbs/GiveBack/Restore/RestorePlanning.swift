internal import ATProtocol
internal import IPLD
internal import Restore
internal import Snapshots
internal import XRPC

/// `carpack restore --plan`: what would be done and what is needed.
struct RestorePlanning {
  let command: RestoreCommand

  func run(_ snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let target = command.to ?? ""
    let plan = try runBlocking {
      try await RestorePlan(snapshot, to: target, network: Network(networkOptions))
    }
    if Console.isJSON { printJSON(plan) } else { printText(plan) }
    if plan.unrestored.count > plan.unrestored.acceptedCount { throw ExitStatus.incomplete }
  }

  private func printText(_ plan: RestorePlan) {
    let source = plan.source
    Console.print(
      "account      \(source.did)\(plan.handle.map { ", \($0)" } ?? "")")
    Console.print(
      "snapshot     \(source.archived.snapshot.rev.map { "revision \($0), " } ?? "")made \(source.archived.snapshot.createdAt)"
    )
    Console.print(
      "from         \(plan.oldServer ?? "no server")\(plan.oldStanding.map { " (\($0))" } ?? "")")
    Console.print("to           \(plan.server.url) (\(plan.server.facts.did))")
    Console.print(
      "repository   \(Quantity.count(source.recordCount, "record")), \(Quantity.bytes(source.byteCount))"
    )
    Console.print(
      "blobs        \(Quantity.grouped(plan.upload.count)) to send, \(Quantity.bytes(plan.upload.bytes)); \(Quantity.grouped(plan.unrestored.count)) would be missing"
    )
    Console.print("preferences  \(plan.hasPreferences ? "in the archive" : "not in the archive")")
    if plan.losesHandle, let handle = plan.handle {
      Console.print(
        "handle       \(handle) goes with the old server; the new one gives out names under \(plan.server.facts.userDomains.joined(separator: ", "))"
      )
    }
    for need in plan.needs { Console.print("needed       \(need)") }
    Console.print(
      "steps        account, repository, blobs, comparison, \(plan.hasPreferences ? "preferences, " : "")then, when you agree: identity, activation"
    )
    for blob in plan.unrestored.first.prefix(Console.maximumTold) {
      Console.say(
        .missing, "\(blob.cid)\(blob.record.map { " of \($0)" } ?? ""): \(blob.reason.sentence)")
    }
    let more = plan.unrestored.count - Console.maximumTold
    if more > 0 { Console.say(.missing, "and \(Quantity.grouped(more)) more; --json lists them") }
    for warning in plan.warnings { command.reporting.common.say(.note, warning) }
  }

  private func printJSON(_ plan: RestorePlan) {
    Console.printJSON(.restore) { json in
      json.field("event", "plan")
      RestoreDisplay.write(plan.source, to: &json)
      json.beginObject("server")
      RestoreDisplay.write(plan.server, to: &json)
      json.endObject()
      json.field("oldServer", plan.oldServer)
      json.field("oldStanding", plan.oldStanding)
      json.field("handle", plan.handle?.text)
      json.field("losesHandle", plan.losesHandle)
      json.field("uploads", plan.upload.count)
      json.field("uploadBytes", plan.upload.bytes)
      json.field("unrestoredCount", plan.unrestored.count)
      json.beginArray("unrestored")
      for blob in plan.unrestored.first { RestoreDisplay.write(blob, to: &json) }
      json.endArray()
      json.field("rotationKeys", plan.rotationKeys)
      json.field("hasPreferences", plan.hasPreferences)
      json.field("needs", plan.needs)
      json.field("warnings", plan.warnings)
    }
  }
}
