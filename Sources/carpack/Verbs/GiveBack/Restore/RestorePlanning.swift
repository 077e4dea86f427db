internal import ATProtocol
internal import HTTP
internal import Reports
internal import Restore
internal import Snapshots
internal import Terminal
internal import XRPC

/// `carpack restore --plan`: what would be done and what is needed.
extension RestoreCommand {
  func showPlan(_ snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let plan = try runBlocking { [target = to ?? ""] in
      try await RestorePlan(snapshot, to: target, network: Network(networkOptions))
    }
    if json {
      RestoreDisplay.plan.print(plan)
    } else {
      for (name, text) in plan.rows {
        Console.print(name + String(repeating: " ", count: 13 - name.count) + text)
      }
      plan.unrestored.say()
      for warning in plan.warnings { common.say(.note, warning) }
    }
    if !plan.unrestored.areAccepted { throw ExitStatus.incomplete }
  }
}

extension RestorePlan {
  /// What a person reads: what each text is about, and the text.
  fileprivate var rows: [(String, String)] {
    let snapshot = source.archived.snapshot
    var rows = [
      ("account", "\(source.did)\(handle.map { ", \($0)" } ?? "")"),
      (
        "snapshot",
        "\(snapshot.rev.map { "revision \($0), " } ?? "")made \(snapshot.createdAt)"
      ),
      ("from", old.map { "\($0.url) (\($0.standing.sentence))" } ?? "no server"),
      ("to", "\(server.url) (\(server.facts.did))"),
      (
        "repository",
        "\(Quantity.count(source.recordCount, "record")), \(Quantity.bytes(source.byteCount))"
      ),
      (
        "blobs",
        "\(Quantity.grouped(upload.count)) to send, \(Quantity.bytes(upload.bytes)); \(Quantity.grouped(unrestored.count)) would be missing"
      ),
      ("preferences", hasPreferences ? "in the archive" : "not in the archive"),
    ]
    if losesHandle, let handle {
      let domains = server.facts.userDomains.joined(separator: ", ")
      rows.append(
        (
          "handle",
          "\(handle) goes with the old server; the new one gives out names under \(domains)"
        ))
    }
    rows += needs.map { ("needed", $0) }
    let preferences = hasPreferences ? "preferences, " : ""
    rows.append(
      (
        "steps",
        "account, repository, blobs, comparison, \(preferences)then, when you agree: identity, activation"
      ))
    return rows
  }

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
