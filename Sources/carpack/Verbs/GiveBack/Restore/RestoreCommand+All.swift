internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Failures
internal import Files
internal import HTTP
internal import IPLD
internal import Reports
internal import Restore
internal import Snapshots
internal import Synchronization
internal import SystemPackage
internal import Terminal

/// `carpack restore --all`: the accounts of a server that is gone, for its operator.
struct ServerRestoreOptions: ParsableArguments {
  private static let input = SecretInput(
    name: "admin password of the new server", variable: "CARPACK_ADMIN_PASSWORD",
    option: "--admin-password-file")

  @Flag(
    help: "Restore all accounts of a folder or a bucket's prefix, as the operator of both servers.")
  var all = false

  @Option(
    help: ArgumentHelp(
      "With --all: the PLC rotation key of the old server.", valueName: "keyfile"),
    completion: .file())
  var rotationKey: String?

  @Option(
    help: ArgumentHelp(
      "With --all: the file whose first line is the admin password of the new server (CARPACK_ADMIN_PASSWORD, or asked for).",
      valueName: "file"),
    completion: .file())
  var adminPasswordFile: String?

  @Option(
    help: ArgumentHelp(
      "With --all: the file with a DID and a mail address on each line.", valueName: "file"),
    completion: .file())
  var accounts: String?

  @Option(help: ArgumentHelp("With --all: how many accounts at a time.", valueName: "n"))
  var jobs = 4

  func validate() throws {
    guard all == (rotationKey != nil), all || accounts == nil && adminPasswordFile == nil else {
      throw ValidationError(
        "--all, --rotation-key, --admin-password-file and --accounts go together")
    }
    guard 1...64 ~= jobs else { throw ValidationError("--jobs has to be one of 1 to 64") }
  }

  /// The admin password.
  func password(isPlan: Bool) throws -> Secret {
    isPlan ? Secret("") : try Self.input.need(adminPasswordFile)
  }

  /// The mail addresses, by the accounts.
  func addresses() throws -> [DID: String] {
    guard let accounts else { return [:] }
    let text = try InputFile(accounts).withBytes { String(decoding: $0.array, as: UTF8.self) }
    var addresses: [DID: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
      let words = line.split { $0 == " " || $0 == "\t" || $0 == "," }
      guard words.count == 2, words[1].contains("@") else {
        throw Failure(
          "\(accounts): a line is no DID with a mail address", status: .usage, at: accounts)
      }
      do {
        addresses[try DID(String(words[0]))] = String(words[1])
      } catch {
        throw Failure("\(accounts): \(words[0]) is no DID", status: .usage, at: accounts)
      }
    }
    return addresses
  }
}

extension RestoreCommand {
  /// The key that vouches for the accounts, and the journal, in the current folder.
  private static let (keyFile, journal) = (
    FilePath("carpack-restore-all.pem"), FilePath("carpack-restore-all.jsonl")
  )

  func restoreAll(to target: String) throws {
    let names = NamedArchives(
      paths: [given.archive.file], limits: given.archive.limits.limits, store: given.archive.store)
    let (files, searched) = try names.files()
    var networkOptions = try given.network.options()
    networkOptions.namedServers.append(target)
    let options = try serverOptions(to: target)
    let password = try server.password(isPlan: plan)
    let addresses = try server.addresses()
    try agreeToAll(files.count)
    let journal = plan ? nil : try OpenJournal(Self.journal)
    let outcomes = Mutex(AllOutcomes())
    try runBlocking { [plan, jobs = server.jobs, networkOptions] in
      let restore = try ServerRestore(
        options, keeping: plan ? nil : Self.keyFile, admin: password, addresses: addresses,
        network: Network(networkOptions)
      ) { did, event in
        if case .warning(let text) = event { Console.say(.warning, "\(did): \(text)") }
      }
      try await forEachConcurrently(files, atATime: jobs) { file in
        let snapshots: [ArchivedSnapshot]
        do {
          snapshots = try Self.newest(in: file, names)
        } catch let error where Failure.isOurs(error) {
          outcomes.withLock { $0.add(Failure(error).of(file)) }
          return
        }
        for snapshot in snapshots {
          let did = snapshot.snapshot.did
          let (found, outcome) =
            plan ? try await restore.plan(snapshot) : (nil, try await restore.restore(snapshot))
          try journal?.note(did, outcome)
          outcomes.withLock { $0.add(outcome, of: did, found) }
        }
      }
    }
    let result = outcomes.withLock { $0 }
    result.say(isPlan: plan)
    if !plan, result.isFinished { try AtomicFile.remove(Self.keyFile) }
    var status = searched
    status.add(result.status)
    try ExitStatus.end(with: status.worst)
  }

  /// Asks once for all accounts, of which several are restored at a time.
  ///
  /// - Throws: ``ExitStatus`` if it may not be done.
  private func agreeToAll(_ count: Int) throws {
    let question =
      "Restore the accounts of \(Quantity.count(count, "archive"))? Their DIDs are changed, and they are activated"
    guard !plan, !(yes.contains(.identity) && yes.contains(.activate)), !Console.agrees(question)
    else { return }
    Console.say(.unfinished, "stopped before a step that needs your word")
    RestoreDisplay.say([
      ContinuedCommand.line(.all([("--yes", "identity"), ("--yes", "activate")]))
    ])
    throw ExitStatus.incomplete
  }

  private func serverOptions(to target: String) throws -> RestoreOptions {
    var options = RestoreOptions(
      target: target.hasSuffix("/") ? String(target.dropLast()) : target, password: Secret(""),
      now: { Host.now }, agrees: { _ in true }, asksForCode: { _, _ in nil })
    let file = try KeyFile(server.rotationKey ?? "")
    (options.recoveryKey, options.passphrase) = (file.key, file.passphrase)
    options.abandonsOld = abandonOld
    options.acceptsMissing = accept.contains(.missing)
    options.acceptsOlder = abandonOld
    options.comparesBlobs = !skipBlobComparison
    options.connections = given.network.connections
    return options
  }

  /// The newest snapshot of each account in an archive.
  private static func newest(in file: String, _ names: NamedArchives) throws -> [ArchivedSnapshot] {
    let opened = try OpenedArchive(file, names.limits, names.store)
    let history = try opened.history
    return try history.newestOfAccounts.map { try ArchivedSnapshot($0.cid, in: history.reader) }
  }
}

/// The journal of all: a line of JSON for each account, once it is known what came of it.
private final class OpenJournal: Sendable {
  private let state: Mutex<(file: FileStorage, end: UInt64)>

  /// Opens it, and keeps other runs away.
  ///
  /// - Throws: `ArchiveError` if another run has it, or it cannot be written.
  init(_ path: FilePath) throws {
    let file = try FileStorage.openOrCreate(path, permissions: .ownerReadWrite)
    state = Mutex((file, try file.size))
  }

  func note(_ did: DID, _ outcome: ServerRestore.Outcome) throws {
    var json = JSONWriter(pretty: false)
    json.beginObject()
    json.field("did", did.text)
    json.field("at", Host.now)
    json.field("outcome", outcome.said.word)
    json.field("why", outcome.said.why)
    json.endObject()
    json.newline()
    let bytes = json.takeBytes()
    try state.withLock { state in
      try state.file.write(bytes.span, at: state.end)
      state.end += UInt64(bytes.count)
    }
  }
}

/// What came of all accounts.
private struct AllOutcomes {
  private var counts: [String: Int] = [:]
  private var upload: (count: Int, bytes: UInt64) = (0, 0)
  private var statuses: [ExitStatus] = []

  /// The worst of all.
  var status: ExitStatus { .worst(statuses) }
  /// Whether every account is where it is going to be.
  var isFinished: Bool { status == .success }

  mutating func add(_ outcome: ServerRestore.Outcome, of did: DID, _ plan: RestorePlan?) {
    let (word, why) = outcome.said
    counts[word, default: 0] += 1
    if let plan { upload = (upload.count + plan.upload.count, upload.bytes + plan.upload.bytes) }
    switch outcome {
    case .done(_, let missing): statuses.append(missing > 0 ? .incomplete : .success)
    case .waiting: statuses.append(.incomplete)
    case .elsewhere: break
    case .failed(let error): statuses.append(Failure(error).status)
    }
    if Console.isJSON {
      RestoreDisplay.account.print((did, word, why))
    } else {
      Console.print("\(did): \(word)\(why.map { ", \($0)" } ?? "")")
    }
    Console.flush()
  }

  mutating func add(_ failure: Failure) {
    failure.say()
    statuses.append(failure.status)
  }

  func say(isPlan: Bool) {
    guard !Console.isJSON else { return }
    let parts = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    Console.print(parts.isEmpty ? "no accounts" : parts.joined(separator: ", "))
    guard isPlan else { return }
    Console.print(
      "\(Quantity.count(upload.count, "blob")) to send, \(Quantity.bytes(upload.bytes))")
  }
}

extension ServerRestore.Outcome {
  /// A word for a script, and why.
  var said: (word: String, why: String?) {
    switch self {
    case .done(wasDone: true, _): ("done", "it was active there")
    case .done(_, let missing): ("done", missing > 0 ? "\(missing) blobs are missing" : nil)
    case .waiting(let why): ("waiting", "for its owner: \(why)")
    case .elsewhere(let server): ("elsewhere", "its DID names \(server)")
    case .failed(let error): ("failed", Failure(error).message)
    }
  }
}
