internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Reports
internal import Restore
internal import Snapshots
internal import Terminal
internal import XRPC

/// `carpack restore --plan`: what would be done and what is needed.
struct RestorePlanning {
  let command: RestoreCommand

  func run(_ snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let target = command.to ?? ""
    let plan = try runBlocking {
      try await RestorePlan(snapshot, to: target, network: Network(networkOptions))
    }
    if Console.isJSON { RestoreReports.plan.print(plan) } else { printText(plan) }
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
      "from         \(plan.old?.url ?? "no server")\(plan.old.map { " (\($0.standing.sentence))" } ?? "")"
    )
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

}

extension RestorePlan {
  /// How many blobs the reference server takes a day.
  private static let uploadsADay = 1000

  /// What has to be given.
  var needs: [String] {
    var needs: [String] = []
    if let old {
      if old.standing.isThere {
        needs.append("the account's own password: --login (no app password)")
        if source.did.method == "plc" {
          needs.append("the code that \(old.url) sends by mail, or a rotation key of your own")
        }
      } else {
        needs.append(
          "a rotation key of your own: --recovery-key; without one the account cannot be moved, and --as-new makes another of the archive"
        )
        needs.append("a mail address for the account: --email")
      }
      if source.did.method == "web" {
        needs.append("a change of the DID document, which is yours to make")
      }
    } else {
      needs.append("a key: the DID document names no server that could vouch for the account")
    }
    if server.facts.isInviteRequired { needs.append("an invite code of \(server.url): --invite") }
    return needs
  }

  /// What a person should know.
  var warnings: [String] {
    var warnings: [String] = []
    if let old, isThere {
      warnings.append("the account is on \(old.url) already: --blobs-only sends what it lacks")
    }
    if case .active(_, let head)? = old?.standing, head != source.head {
      warnings.append(
        "the account has gone on since this snapshot: run \"carpack backup\" first, or choose this one with --at"
      )
    }
    if upload.count > Self.uploadsADay {
      let days = (upload.count + Self.uploadsADay - 1) / Self.uploadsADay
      warnings.append(
        "the reference server takes 1,000 blobs a day: with such a limit it takes \(days) days, and is waited for"
      )
    }
    if server.facts.blobLimit == nil {
      warnings.append("the new server does not say how long a blob may be")
    }
    warnings += source.oddities
    warnings.append(
      "a server may refuse a repository of \(source.byteCount) bytes for its length, which it does not say beforehand"
    )
    return warnings
  }
}
