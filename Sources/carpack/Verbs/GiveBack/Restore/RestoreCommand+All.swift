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

/// The password of a server's operator.
enum AdminPassword {
  static let input = SecretInput(
    name: "admin password of the server", variable: "CARPACK_ADMIN_PASSWORD",
    option: "--admin-password-file")
}

/// `carpack restore --all`, `carpack rehearse --all`: the accounts of a server that is gone, for
/// its operator.
struct ServerRestoreOptions: ParsableArguments {
  @Flag(
    help: "Restore all accounts of a folder or a bucket prefix, as the operator of both servers.")
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
      "With --all: the server that is gone, if the accounts were backed up from another address of it.",
      valueName: "url"))
  var oldServer: String?

  @Option(
    help: ArgumentHelp(
      "With --all: a file with a DID and a mail address on each line.", valueName: "file"),
    completion: .file())
  var accounts: String?

  @Option(
    help: ArgumentHelp(
      "With --all: the folder for the documents that did:web accounts have to publish, as DOMAIN.did.json.",
      valueName: "folder"),
    completion: .directory)
  var documents: String?

  @Option(help: ArgumentHelp("With --all: how many accounts at a time.", valueName: "n"))
  var jobs = 4

  func validate() throws {
    let others = [accounts, adminPasswordFile, documents, oldServer].compactMap(\.self)
    guard all == (rotationKey != nil), all || others.isEmpty else {
      throw ValidationError(
        "--all, --rotation-key, --admin-password-file, --old-server, --accounts and --documents go together"
      )
    }
    guard 1...64 ~= jobs else { throw ValidationError("--jobs takes 1 to 64") }
  }

  /// The admin password.
  func password(isPlan: Bool) throws -> Secret {
    isPlan ? Secret("") : try AdminPassword.input.need(adminPasswordFile)
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
          "\(accounts): a line is not a DID and a mail address", status: .usage, at: accounts)
      }
      do {
        addresses[try DID(String(words[0]))] = String(words[1])
      } catch {
        throw Failure("\(accounts): \(words[0]) is not a DID", status: .usage, at: accounts)
      }
    }
    return addresses
  }
}

/// What is done with all accounts.
struct AllAccounts {
  let given: RestoreArguments
  let server: ServerRestoreOptions
  /// How each of them is restored.
  var options: RestoreOptions
  /// Whether to show only what would be done.
  var isPlan = false

  /// A restore or a rehearsal of all accounts of a folder or a bucket's prefix.
  ///
  /// - Throws: ``Failure`` for a key that cannot be read.
  init(
    _ given: RestoreArguments, _ server: ServerRestoreOptions, to target: String,
    agrees: @escaping @Sendable (RestoreQuestion) -> Bool
  ) throws {
    (self.given, self.server) = (given, server)
    options = RestoreOptions(
      target: target, password: Secret(""), now: { Host.now }, agrees: agrees,
      asksForCode: { _, _ in nil })
    let file = try KeyFile(server.rotationKey ?? "")
    (options.recoveryKey, options.passphrase) = (file.key, file.passphrase)
    options.connections = given.network.connections
    options.oldServer = server.oldServer
  }

  /// The key that vouches for the accounts, and the journal, in the current folder.
  private var names: (keyFile: FilePath, journal: FilePath) {
    let name = options.isRehearsal ? "carpack-rehearse-all" : "carpack-restore-all"
    return (FilePath("\(name).pem"), FilePath("\(name).jsonl"))
  }

  /// Restores the accounts once the user agrees, and prints the result of each.
  ///
  /// - Parameter agree: asks once for all, of this many archives.
  /// - Throws: ``ExitStatus``; ``Failure``.
  func run(agree: (Int) throws -> Void) throws {
    let archives = NamedArchives(
      paths: [given.archive.file], limits: given.archive.limits.limits, store: given.archive.store)
    let (files, searched) = try archives.files()
    var networkOptions = try given.network.options()
    networkOptions.namedServers.append(options.target)
    let password = try server.password(isPlan: isPlan)
    let addresses = try server.addresses()
    if !isPlan { try agree(files.count) }
    let journal = isPlan ? nil : try OpenJournal(names.journal)
    let outcomes = Mutex(AllOutcomes())
    try runBlocking { [server, isPlan, options, names, networkOptions] in
      let restore = try ServerRestore(
        options, keeping: isPlan ? nil : names.keyFile, admin: password, addresses: addresses,
        network: Network(networkOptions)
      ) { server.show($0, $1) }
      try await forEachConcurrently(files, atATime: server.jobs) { file in
        let snapshots: [ArchivedSnapshot]
        do {
          snapshots = try Self.newest(in: file, archives)
        } catch let error where Failure.isOurs(error) {
          outcomes.withLock { $0.add(Failure(error).of(file)) }
          return
        }
        for snapshot in snapshots {
          let did = snapshot.snapshot.did
          let (found, outcome) =
            isPlan ? try await restore.plan(snapshot) : (nil, try await restore.restore(snapshot))
          try journal?.note(did, outcome)
          outcomes.withLock { $0.add(outcome, of: did, found) }
        }
      }
    }
    let result = outcomes.withLock { $0 }
    result.say(isPlan: isPlan)
    if !isPlan, result.isFinished { try AtomicFile.remove(names.keyFile) }
    var status = searched
    status.add(result.status)
    try ExitStatus.end(with: status.worst)
  }

  /// The newest snapshot of each account in an archive.
  private static func newest(in file: String, _ archives: NamedArchives) throws
    -> [ArchivedSnapshot]
  {
    let opened = try OpenedArchive(file, archives.limits, archives.store)
    let history = try opened.history
    return try history.newestOfAccounts.map { try ArchivedSnapshot($0.cid, in: history.reader) }
  }
}

extension RestoreCommand {
  func restoreAll(to target: String) throws {
    var all = try AllAccounts(given, server, to: target) { [yes] question in
      if case .signing = question { yes.contains(.sign) } else { true }
    }
    all.isPlan = plan
    all.options.abandonsOld = abandonOld
    all.options.acceptsMissing = accept.contains(.missing)
    all.options.acceptsOlder = abandonOld
    all.options.comparesBlobs = !skipBlobComparison
    try all.run { count in
      let question =
        "Restore the accounts of \(Quantity.count(count, "archive"))? This points their DIDs to the new server and activates the accounts"
      guard !(yes.contains(.identity) && yes.contains(.activate)), !Console.agrees(question) else {
        return
      }
      Console.say(.unfinished, "waiting for your confirmation")
      RestoreDisplay.say([
        ContinuedCommand.line(.all([("--yes", "identity"), ("--yes", "activate")]))
      ])
      throw ExitStatus.incomplete
    }
  }
}

extension RehearseCommand {
  func rehearseAll() throws {
    var all = try AllAccounts(given, server, to: to) { _ in true }
    all.options.isRehearsal = true
    all.options.abandonsOld = true
    try all.run { count in
      let directory = given.network.plcDirectory ?? ""
      try agree(
        "a rehearsal creates the accounts of \(Quantity.count(count, "archive")) on \(to), deactivated, where they stay; \(directory) receives their histories and one operation each",
        "Create them?")
    }
  }
}

extension ServerRestoreOptions {
  /// Shows the events of an account that the user has to act on.
  func show(_ did: DID, _ event: RestoreEvent) {
    switch event {
    case .warning(let text): Console.say(.warning, "\(did): \(text)")
    case .document(let json, let url):
      guard let documents else { return RestoreDisplay.show(document: json, at: url) }
      let path = FilePath(documents).appending("\(did.methodSpecificID).did.json")
      do {
        try BlobFolder.make(documents)
        try AtomicFile.save(to: path, replacing: true) { try $0(Array((json + "\n").utf8).span) }
        Console.say(.note, "\(did): publish \(path) at \(url)")
      } catch {
        Failure(error).of(path.string).say()
        RestoreDisplay.show(document: json, at: url)
      }
    default: break
    }
  }
}

/// The journal of all: a line of JSON for each account, once its result is known.
private final class OpenJournal: Sendable {
  private let state: Mutex<(file: FileStorage, end: UInt64)>

  /// Opens and locks it.
  ///
  /// - Throws: `ArchiveError` if another run has it, or it cannot be written.
  init(_ path: FilePath) throws {
    let file = try FileStorage.openOrCreate(path, permissions: .ownerReadWrite)
    var end = try file.size
    // A line that was interrupted is not continued by the next.
    if end > 0, try file.read(1, at: end - 1) != [UInt8(ascii: "\n")] {
      try file.write([UInt8(ascii: "\n")].span, at: end)
      end += 1
    }
    state = Mutex((file, end))
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

/// The results of all accounts.
private struct AllOutcomes {
  private var counts: [String: Int] = [:]
  private var upload: (count: Int, bytes: UInt64) = (0, 0)
  private var statuses: [ExitStatus] = []

  /// The worst exit status of all.
  var status: ExitStatus { .worst(statuses) }
  /// Whether every account has arrived.
  var isFinished: Bool { status == .success }

  mutating func add(_ outcome: ServerRestore.Outcome, of did: DID, _ plan: RestorePlan?) {
    let (word, why) = outcome.said
    counts[word, default: 0] += 1
    if let plan { upload = (upload.count + plan.upload.count, upload.bytes + plan.upload.bytes) }
    switch outcome {
    case .done(_, let lacking), .planned(let lacking):
      statuses.append(lacking.isEmpty ? .success : .incomplete)
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
    case .done(let wasDone, let lacking):
      (
        "done",
        lacking.isEmpty
          ? wasDone ? "it was already active there" : nil
          : "but it lacks \(lacking.joined(separator: ", "))"
      )
    case .planned(let lacking):
      ("planned", lacking.isEmpty ? nil : "it would lack \(lacking.joined(separator: ", "))")
    case .waiting(let why): ("waiting", "for its owner: \(why)")
    case .elsewhere(let server): ("elsewhere", "its DID names \(server)")
    case .failed(let error): ("failed", Failure(error).message)
    }
  }
}
