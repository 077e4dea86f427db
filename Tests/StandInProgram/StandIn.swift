import ArgumentParser
import Foundation
import StandIn

/// A server for tests, as a program of its own.
@main
struct StandInProgram: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stand-in",
    abstract: "A personal data server on loopback for tests, with its DID directory.",
    subcommands: [Serve.self, Control.self])
}

/// Serves accounts until it is ended.
struct Serve: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve accounts, until a signal ends it.",
    discussion: """
      One port is the server, the directory (/did:plc:…), the handles' hosts (/.well-known/atproto-did) and DNS over HTTPS \
      (/dns-query). It is controlled under /control/: accounts, counts, requests, forget, advance, status, lose, mail, behaviour, \
      set, fault, random, clear.

      Faults: status=N page=N 429=SECONDS drop reset silent late=SECONDS cut=PART cut-reset=PART short=PART corrupt=PART \
      stall=PART drip=BYTES misannounced=BYTES endless html redirect=URL large-head=BYTES endless-head garbage bomb=BYTES \
      deep-json=DEPTH other-content lacks-blocks bad-signature other-account previous-revision rootless.
      """)

  @Option(help: "A folder as those in Fixtures; may be given several times.")
  var fixture: [String] = []
  @Option(help: "How many accounts to make up, account-0.example.com and on.")
  var accounts = 0
  @Option(help: "How many posts each of them has.")
  var posts = 10
  @Option(help: "How many blobs each of them has.")
  var blobs = 0
  @Option(
    help: "How many posts of others each of them likes; an app view that shows them is there, too.")
  var likes = 0
  @Option(help: "How many others each of them follows.")
  var follows = 0
  @Option(help: "How many bytes each of these blobs has.")
  var blobSize = 10_000
  @Option(
    help: "So many larger blobs of so many bytes, as 2x300000000; may be given several times.")
  var large: [String] = []
  @Option(
    help: "How many of the accounts have the larger blobs, from the first on; all if not said.")
  var largeAccounts: Int?
  @Option(
    help:
      "What server to behave as: plain, typescript, millipds, cocoon, arroba, arroba-blobs, hostile."
  )
  var behaviour = "plain"
  @Option(
    help:
      "So many blocks of so many bytes behind each repository, as 10x100; 10x0? cannot be verified."
  )
  var foreignBlocks: String?
  @Option(help: "How many milliseconds every answer takes at the least.")
  var latency = 0.0
  @Option(help: "How likely a fault is, 0 to 1.")
  var fault = 0.0
  @Option(help: "Which faults there are, with commas between them.")
  var faultKinds: String?
  @Option(help: "What decides about faults.")
  var seed: UInt64 = 1
  @Option(help: "The limit that is kept, as 3000/300: requests and seconds.")
  var rateLimit: String?
  @Option(help: "Where to listen; 0 for a port that is free.")
  var port: UInt16 = 0
  @Option(
    help: "Where to write a line of JSON for each request, once it is known what became of it.")
  var log: String?
  @Option(help: "Where to write the server's URL once it listens.")
  var readyFile: String?
  @Flag(
    help:
      "Have a directory of its own that takes operations, and a second server without accounts, for moving there."
  )
  var secondServer = false
  @Option(help: "How many blobs the second server takes in how many seconds, as 1000/86400.")
  var uploadLimit: String?
  @Option(help: "The longest blob that the second server takes, in bytes.")
  var blobLimit = 50 << 20
  @Option(help: "An invite code that the second server wants.")
  var invite: String?
  @Option(help: "The admin password of the second server, which then wants invite codes.")
  var adminPassword: String?
  @Option(help: "A rotation key that is put in front of those of all accounts, as did:key:….")
  var rotationKey: String?

  func run() throws {
    var behaviour = try chosenBehaviour()
    behaviour.latency = latency / 1000
    if let foreignBlocks {
      guard let blocks = ForeignBlocks(foreignBlocks) else {
        throw ValidationError("blocks are written as 10x100")
      }
      behaviour.foreignBlocks = blocks
    }
    if let rateLimit {
      guard let limit = Behaviour.RateLimit(rateLimit) else {
        throw ValidationError("a limit is written as 3000/300")
      }
      behaviour.rateLimit = limit
    }
    let file = try log.map { path -> FileHandle in
      guard FileManager.default.createFile(atPath: path, contents: nil) else {
        throw ValidationError("cannot write \(path)")
      }
      return try FileHandle(forWritingTo: URL(filePath: path))
    }
    let lock = NSLock()
    let server = try StandInPDS(
      port: port,
      accounts: try madeUp(behaviour.account) + fixture.map(StandInAccount.init(folder:)),
      behaviour: behaviour
    ) { exchange in
      guard let file, !exchange.path.hasPrefix("/control/") else { return }
      lock.withLock {
        do {
          try file.write(contentsOf: Data((exchange.json + "\n").utf8))
        } catch {
          fatalError("the log cannot be written: \(error)")
        }
      }
    }
    if fault > 0 {
      var faults = RandomFaults(rate: fault, seed: seed)
      if let faultKinds {
        faults.kinds = try faultKinds.split(separator: ",").map { name in
          guard let kind = Fault(name: String(name)) else {
            throw ValidationError("there is no fault \(name)")
          }
          return kind
        }
      }
      server.randomFaults = faults
    }
    let appView = likes + follows > 0 ? try StandInAppView() : nil
    let (directory, second) = try secondServer ? startSecond(beside: server) : (nil, nil)
    if let readyFile {
      try Data((server.url + "\n").utf8).write(to: URL(filePath: readyFile), options: .atomic)
    }
    var lines = server.url + "\n"
    for account in server.accounts { lines += "\(account.handle) \(account.did)\n" }
    if let appView { lines += "app-view \(appView.url)\n" }
    if let directory, let second {
      lines += "directory \(directory.url)\nsecond \(second.url)\n"
    }
    try FileHandle.standardOutput.write(contentsOf: Data(lines.utf8))
    withExtendedLifetime(appView) { while true { Thread.sleep(forTimeInterval: 3600) } }
  }

  /// Starts a directory that knows the accounts, and a second server.
  private func startSecond(beside server: StandInPDS) throws -> (StandInDirectory, StandInPDS) {
    let directory = try StandInDirectory()
    var behaviour = Behaviour()
    behaviour.userDomain = ".second.example"
    behaviour.blobLimit = blobLimit
    behaviour.importLimit = 1 << 30
    behaviour.invites = invite.map { [$0] } ?? adminPassword.map { _ in [] }
    behaviour.adminPassword = adminPassword
    if let uploadLimit {
      guard let limit = Behaviour.RateLimit(uploadLimit) else {
        throw ValidationError("a limit is written as 1000/86400")
      }
      behaviour.uploadLimit = limit
    }
    let second = try StandInPDS(behaviour: behaviour)
    (server.directory, second.directory) = (directory, directory)
    for account in server.accounts {
      account.email = "\(account.handle.prefix { $0 != "." })@example.com"
      try directory.register(account, on: server.url)
      if let rotationKey {
        try directory.addRotationKey(rotationKey, of: account.did, signedBy: account.rotation)
      }
    }
    return (directory, second)
  }

  private func chosenBehaviour() throws -> Behaviour {
    if behaviour == "plain" { return Behaviour() }
    if behaviour == "hostile" { return .hostile }
    if behaviour == "arroba-blobs" {
      var behaviour = Behaviour.arroba
      behaviour.hasNoBlobs = false
      return behaviour
    }
    guard let found = Behaviour.observed.first(where: { $0.name == behaviour }) else {
      throw ValidationError("there is no behaviour \(behaviour)")
    }
    return found.behaviour
  }

  private func madeUp(_ style: AccountStyle) throws -> [StandInAccount] {
    let sizes = try large.flatMap { text -> [Int] in
      let parts = text.split { $0 == "x" || $0 == "×" }
      guard parts.count == 2, let count = Int(parts[0]), let size = Int(parts[1]) else {
        throw ValidationError("large blobs are written as 2x300000000")
      }
      return [Int](repeating: size, count: count)
    }
    return try (0..<accounts).map {
      let account = try StandInAccount(
        "account-\($0)", posts: posts, blobs: blobs, blobSize: blobSize,
        large: $0 < largeAccounts ?? accounts ? sizes : [], style: style)
      if likes + follows > 0 {
        try account.commit(
          StandInAccount.pointing(likes: 0..<likes, follows: likes..<likes + follows))
      }
      return account
    }
  }
}

/// Changes something on a server that runs.
struct Control: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Change something on a server that runs.",
    discussion: "For instance: stand-in control http://127.0.0.1:8080 \"advance?did=did:plc:…\"")

  @Argument(help: "The server, as it has said.")
  var server: String
  @Argument(help: "What is done: a path under /control/, with its query.")
  var control: String

  func run() throws {
    guard let port = server.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw ValidationError("there is no port in \(server)")
    }
    let (status, body) = try LoopbackClient.get(port: port, path: "/control/\(control)")
    print(body)
    if status != 200 { throw ExitCode.failure }
  }
}
