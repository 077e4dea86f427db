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

  /// What has to be given.
  var needs: [String] {
    var needs: [String?] = [
      "a key: the DID document names no server that could vouch for the account"
    ]
    if let old {
      let isThere = old.standing.isThere
      needs = [
        isThere
          ? "the account's own password: --login (no app password)"
          : "a rotation key of your own: --recovery-key; without one the account cannot be moved, and --as-new makes another of the archive",
        isThere && source.did.method == "plc"
          ? "the code that \(old.url) sends by mail, or a rotation key of your own" : nil,
        isThere ? nil : "a mail address for the account: --email",
        source.did.method == "web"
          ? "a change of the DID document, which is yours to make" : nil,
      ]
    }
    if server.facts.isInviteRequired { needs.append("an invite code of \(server.url): --invite") }
    return needs.compactMap(\.self)
  }

  /// What a person should know.
  var warnings: [String] {
    let warnings: [String?] = [
      old.flatMap {
        isThere
          ? "the account is on \($0.url) already: --blobs-only sends what it lacks" : nil
      },
      isOutdated
        ? "the account has gone on since this snapshot: run \"carpack backup\" first, or choose this one with --at"
        : nil,
      uploadDays > 1
        ? "the reference server takes 1,000 blobs a day: with such a limit it takes \(uploadDays) days, and is waited for"
        : nil,
      server.facts.blobLimit == nil
        ? "the new server does not say how long a blob may be" : nil,
    ]
    return warnings.compactMap(\.self) + source.oddities + [
      "a server may refuse a repository of \(source.byteCount) bytes for its length, which it does not say beforehand"
    ]
  }
}
