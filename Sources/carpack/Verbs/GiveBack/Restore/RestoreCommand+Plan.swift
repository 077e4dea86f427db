internal import ATProtocol
internal import Failures
internal import HTTP
internal import Reports
internal import Restore
internal import Snapshots
internal import Terminal
internal import XRPC

/// `carpack restore --plan`: what would be done and what is needed.
extension RestoreCommand {
  func showPlan(_ snapshot: ArchivedSnapshot, _ networkOptions: NetworkOptions) throws {
    let options = try options()
    let plan = try runBlocking { [path = given.path] in
      try await RestorePlan(
        of: snapshot, in: path, options, network: Network(networkOptions)
      ) { Console.say(.note, $0) }
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
    // A missing option is not an error of a plan.
    let statuses = plan.obstacles.map { Failure($0).status }
    if let status = statuses.first(where: { $0 == .refused || $0 == .temporary }) { throw status }
    if !plan.unrestored.areAccepted { throw ExitStatus.incomplete }
  }
}

extension RestorePlan {
  /// The rows for a person: what each text is about, and the text.
  fileprivate var rows: [(String, String)] {
    let snapshot = source.archived.snapshot
    let account = "\(source.did)\(handle.map { ", \($0)" } ?? "")"
    let isNew = isOfNewAccount
    var rows = [
      ("account", isNew ? did?.text ?? "a new one, with its own DID" : account),
      (
        "snapshot",
        "\(snapshot.rev.map { "revision \($0), " } ?? "")made \(snapshot.createdAt)"
      ),
      (
        "from",
        isNew
          ? "the archive of \(account)"
          : old.map { "\($0.url), which \($0.standing.sentence)" } ?? "no server"
      ),
      (
        "to", "\(server.url) (\(server.facts.did))\(isNew ? "" : ", which \(there.sentence)")"
      ),
    ]
    let first = obstaclesInWords.map { ("first", $0) }
    if stepsLeft.isEmpty {
      let end = "nothing left to do: the \(isNew ? "new account is complete" : "account has moved")"
      return rows + (first.isEmpty ? [("steps", end)] : first)
    }
    let sending =
      stepsLeft.contains(.blobs)
      ? "\(Quantity.grouped(upload.count)) to send, \(Quantity.bytes(upload.bytes))"
      : "nothing left to send"
    rows += [
      (
        "repository",
        "\(Quantity.count(source.recordCount, "record")), \(Quantity.bytes(source.byteCount))"
      ),
      ("blobs", "\(sending); \(Quantity.grouped(unrestored.count)) would be missing"),
      ("preferences", hasPreferences ? "in the archive" : "not in the archive"),
    ]
    if let newHandle { rows.append(("handle", newHandle.text)) }
    rows += losses.map { ("lacks", $0) }
    rows += oldServersKeys.map {
      (
        "old key",
        "\($0.key) is the old server's (\($0.evidence.rawValue)): --drop-old-keys removes it"
      )
    }
    rows += first + laterNeeds.map { ("later", $0) }
    let steps = stepsLeft.map { $0 == .proof ? "a record, so that the server signs" : $0.rawValue }
    let split = stepsLeft.firstIndex(where: Self.asked.contains) ?? steps.endIndex
    let parts = [
      steps[..<split].joined(separator: ", "),
      split < steps.endIndex
        ? "when you agree: \(steps[split...].joined(separator: ", "))" : "",
    ]
    rows.append(("steps", parts.filter { !$0.isEmpty }.joined(separator: ", then, ")))
    return rows
  }

  /// The steps that you have to agree to.
  private static let asked: [RestoreStep] = [.identity, .activation, .deactivation, .proof]

  /// What has to be given or put right first.
  var needs: [String] { obstaclesInWords + laterNeeds.map { "later: \($0)" } }

  private var obstaclesInWords: [String] {
    obstacles.map { obstacle in
      let failure = Failure(obstacle)
      return failure.message + (failure.hint.map { ": \($0)" } ?? "")
    }
  }

  /// What has to be given once the account is on the new server.
  private var laterNeeds: [String] {
    var needs: [String] = []
    if let codeSender {
      needs.append("the code that \(codeSender) sends by mail, or a rotation key of your own")
    }
    if source.did.method == "web", stepsLeft.contains(.identity) {
      needs.append("a change of the DID document, which you have to make yourself")
    }
    return needs
  }

  /// What the user should know.
  var warnings: [String] {
    let warnings: [String?] = [
      vouchesItself && obstacles.isEmpty
        ? "the DID will name your own key before the account is created: if the new server then refuses, it stays so until you run the same command again"
        : nil,
      isNamed ? "the DID names \(server.url) already" : nil,
      uploadDays > 1
        ? "the reference server takes 1,000 blobs a day: with that limit the upload takes \(uploadDays) days, and carpack waits"
        : nil,
      server.facts.blobLimit == nil
        ? "the new server does not say how large a blob may be" : nil,
      mayBeTooLarge
        ? "the server may refuse a repository of \(Quantity.bytes(source.byteCount)): it does not announce its limit, and the reference server's default is \(Quantity.bytes(Self.defaultImportLimit))"
        : nil,
    ]
    return warnings.compactMap(\.self) + source.oddities
  }
}
