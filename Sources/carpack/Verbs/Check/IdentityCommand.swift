internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
internal import HTTP
internal import Remote
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal
internal import Verification
internal import XRPC

/// `carpack identity`: who an account was, when, and who signed that.
struct IdentityCommand: ReportingCommand {
  static let page = ManualPage("identity", PackageResources.identity_txt)

  @Argument(
    help: ArgumentHelp(
      "An archive (a file, or an s3:// or https:// address), a handle, a DID or an at:// URI.",
      valueName: "archive|account"),
    completion: .file(extensions: ["zst"]))
  var subject: String

  @OptionGroup var accountOption: AccountOption

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let found = try isArchive ? Failure.naming(shown, ofArchive) : [ofAccount()]
    for evidence in found {
      if json { Self.report.print(evidence) } else { printText(evidence) }
      for fault in evidence.faults { Console.say(.notGenuine, "\(evidence.did): \(fault)") }
    }
    Console.flush()
    if found.contains(where: { !$0.faults.isEmpty }) { throw ExitStatus.notGenuine }
  }

  private var shown: String { RemoteArchive.shown(subject) }

  private var isArchive: Bool {
    if shown.hasSuffix(".car.zst") || RemoteArchive.isAddress(subject) { return true }
    // "carpack extract" makes folders that are called after accounts.
    let isFolderOfAccount =
      BlobFolder.isFolder(subject) && (try? ATIdentifier(account: subject)) != nil
    return AtomicFile.isTaken(FilePath(subject)) && !isFolderOfAccount
  }

  private func ofArchive() throws -> [IdentityEvidence] {
    let opened = try OpenedArchive(subject, ArchiveLimits(), store, over: network.options())
    return try opened.checkingFetched {
      let history = try opened.usableHistory()
      let account = try history.account(accountOption.account)
      return try history.newestOfAccounts.map(\.did).filter { account == nil || $0 == account }
        .map { did in try IdentityEvidence(of: did, history, in: opened.reader) }
    }
  }

  private func ofAccount() throws -> IdentityEvidence {
    let account = try ATIdentifier(account: subject)
    let options = try network.options()
    return try runBlocking {
      let resolver = IdentityResolver(network: try Network(options))
      let did = try await resolver.resolve(account, confirmingHandle: false).did
      return try IdentityEvidence(of: did, log: try await resolver.dids.plcLog(of: did))
    }
  }

  // MARK: Text

  private func printText(_ evidence: IdentityEvidence) {
    guard let history = evidence.history else {
      let what =
        evidence.documents.isEmpty
        ? "nothing is known but the name" : "what DID documents said, without signatures"
      Console.print("\(evidence.did): \(what)")
      for entry in evidence.documents {
        Console.print("  snapshot \(entry.snapshot), \(entry.createdAt)")
        let document = entry.document
        Self.printRows(Self.facts(document?.handle, document?.pds, document?.signingKey))
      }
      return
    }
    Console.print(
      "\(history.did): \(Quantity.count(history.operations.count, "operation")), each checked back to the first"
    )
    var before: [Row] = []
    for (number, operation) in history.operations.enumerated() {
      let (isTakenBack, isEnd) = (operation.nullifiedBy != nil, operation.kind == .tombstone)
      let state = isTakenBack ? ", taken back later" : isEnd ? ", the end" : ""
      let time = operation.receivedAt.map { "\($0)" } ?? "at a time that is not in the log"
      Console.print("  \(number + 1)  \(time)\(state)")
      let facts = isEnd ? [] : Self.facts(of: operation)
      // What the one before it said, too, is not said again.
      let new = facts.filter { fact in !before.contains { $0 == fact } }
      Self.printRows(new + [("signed", "with \(operation.signer.didKey)")])
      if !isTakenBack { before = facts }
    }
  }

  private typealias Row = (String, String?)

  private static func facts(of operation: PLCHistory.Operation) -> [Row] {
    let server = operation.pds.map { "\($0)" }
    let keys = operation.rotationKeys.map(\.didKey).joined(separator: " ")
    return facts(operation.handles.first, server, operation.signingKey) + [("rotation", keys)]
  }

  private static func facts(_ handle: Handle?, _ server: String?, _ key: VerificationKey?) -> [Row]
  {
    [("handle", handle?.text), ("server", server), ("key", key?.didKey)].map {
      ($0, $1 ?? "none")
    }
  }

  private static func printRows(_ rows: [Row]) { Console.print(rows, indent: 5, width: 9) }

  // MARK: JSON

  static let report = Report<IdentityEvidence>(
    "identity", "`carpack identity`: who an account was, when, and who signed that."
  ) {
    Field("did", "the account") { $0.did }
    Field("proven", "whether there is a log that was checked back to its first operation") {
      $0.history != nil
    }
    Field("faults", "what does not hold") { $0.faults }
    Field(
      "operations", "the log of a did:plc, the oldest first",
      each: { $0.history?.operations ?? [] }, as: operations)
    Field(
      "documents", "for an archive: each DID document that differs from the one before",
      each: { $0.documents },
      as: Fields {
        Field("snapshot", "the first snapshot that has it") { $0.snapshot }
        Field("createdAt", "when that snapshot was made") { $0.createdAt }
        Field("handle", "the handle it names") { $0.document?.handle?.text }
        Field("pds", "the server it names") { $0.document?.pds }
        Field("signingKey", "the key it names") { $0.document?.signingKey?.didKey }
      })
  }

  private static let operations = Fields<PLCHistory.Operation> {
    Field("cid", "the operation") { $0.cid }
    Field(
      "receivedAt",
      "when the directory received it, as it says, RFC 3339; null where the log does not say"
    ) { $0.receivedAt.map { "\($0)" } }
    Field("kind", "what it does", .one(of: PLCHistory.Kind.self)) { $0.kind.rawValue }
    Field("handles", "the handles it names") { $0.handles.map(\.text) }
    Field("pds", "the server it names") { $0.pds.map { "\($0)" } }
    Field("signingKey", "the key that signs the repository, as a did:key") {
      $0.signingKey?.didKey
    }
    Field("rotationKeys", "the keys that may sign what follows") {
      $0.rotationKeys.map(\.didKey)
    }
    Field("signer", "the rotation key that signed it") { $0.signer.didKey }
    Field("nullifiedBy", "the operation that nullified it") { $0.nullifiedBy }
  }
}
