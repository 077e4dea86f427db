internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import IPLD
internal import Live
internal import SystemPackage
internal import XRPC

/// `carpack fetch`: the raw pieces of a live account.
struct FetchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fetch",
    abstract:
      "Fetch one raw piece of a live account: its repository, a blob, what its server lists.",
    discussion: Help.discussion(
      """
      For scripts. What comes is checked before it is handed on: a repository block by block, a blob against its CID. Nothing is kept in an archive.
      """,
      examples: [
        "carpack fetch repo alice.example.com -o alice.car",
        "carpack fetch blobs alice.example.com",
        "carpack fetch latest alice.example.com --json",
      ],
      environment: .network),
    subcommands: [
      FetchRepoCommand.self, FetchBlobCommand.self, FetchBlobsCommand.self,
      FetchLatestCommand.self, FetchDocumentCommand.self, FetchPLCLogCommand.self,
    ])

  static let report = Report<(did: DID, latest: (cid: CID, rev: TID)?, blob: CID?)>(
    "fetch", "`carpack fetch latest` and `fetch blobs`."
  ) {
    Field("did", "the account") { $0.did }
    Field(optional: "rev", "with `latest`: the revision") { $0.latest?.rev.text }
    Field(optional: "commit", "with `latest`: the newest commit") { $0.latest?.cid }
    Field(optional: "cid", "with `blobs`: a blob that the server lists") { $0.blob }
  }
}

/// Which account, and how to reach it.
struct FetchOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The account: a handle, a DID or an at:// URI.", valueName: "account"))
  var account: String

  @OptionGroup var network: NetworkCommandOptions

  @OptionGroup var login: LoginOptions

  @OptionGroup var common: CommonOptions

  /// Finds the account and does something with it.
  func run(_ body: @escaping @Sendable (LiveAccount) async throws -> Void) throws {
    let account = try ATIdentifier(account: account)
    let options = try network.options()
    let session = try login.session()
    try runBlocking {
      try await body(
        LiveAccount(account, network: try Network(options), session: session))
    }
  }
}

/// Where a piece goes.
struct FetchOutput: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The file to write, \"-\" for standard output.", valueName: "file"),
    completion: .file())
  var output = "-"

  @Flag(help: "Replace the output if it exists.")
  var force = false

  @OptionGroup var terminal: TerminalOptions

  /// Refuses to write to a terminal, before anything is fetched.
  func check() throws {
    if output == "-" { try terminal.check() }
  }

  /// Writes a piece there, all of it or nothing.
  func write(_ piece: DownloadedFile) throws {
    if output == "-" {
      try Console.writeContent(forcesTerminal: terminal.forceTerminal) { try piece.read($0) }
    } else {
      try piece.save(to: FilePath(output), replacing: force)
    }
  }
}

/// `carpack fetch repo`.
struct FetchRepoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repo", abstract: "The repository as a CAR.",
    discussion: Help.discussion(
      """
      Exit status: 0 it is whole and signed with the account's key, 10 tree nodes or records are missing (it is written all the same), 11 it is malformed and not written, 12 the signature does not hold, and it is not written, 13 it is larger than --max-repo.
      """,
      examples: [
        "carpack fetch repo alice.example.com -o alice.car",
        "carpack fetch repo alice.example.com --since 3lkxag2qhdc2b -o new.car",
        "carpack fetch repo alice.example.com | carpack inspect -",
      ],
      environment: .network))

  @OptionGroup var options: FetchOptions
  @OptionGroup var output: FetchOutput
  @Option(help: ArgumentHelp("Only what has changed since this revision.", valueName: "rev"))
  var since: String?
  @OptionGroup var size: RepositorySize

  func run() throws {
    let since = try since.map { text in try reading("--since") { try TID(text) } }
    let (output, common, limit) = (output, options.common, size.maxRepo.bytes)
    try output.check()
    try options.run { account in
      let (piece, lacks) = try await account.repository(
        since: since, limit: limit, now: Host.now)
      try output.write(piece)
      guard lacks > 0, since == nil else { return }
      common.say(
        .incomplete,
        "\(Quantity.count(lacks, "tree node or record", "tree nodes and records")) missing"
      )
      throw ExitStatus.incomplete
    }
  }
}

/// `carpack fetch blob`.
struct FetchBlobCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "blob", abstract: "One blob, compared with its CID.",
    discussion: Help.discussion(
      """
      Exit status: 0; 13 the server sent something else, or more than --max-blob, of which nothing is written; 69 it does not have it.
      """,
      examples: [
        "carpack fetch blob alice.example.com bafkreibxc… -o picture.jpeg",
        "carpack fetch blob alice.example.com bafkreibxc… --max-blob 1GB > video.mp4",
        "carpack fetch blob did:plc:w3pvxhp5ga2ax32lkbfrxakv bafkreibxc… --login > mine",
      ],
      environment: .network))

  @OptionGroup var options: FetchOptions
  @Argument(help: ArgumentHelp("The blob's CID.", valueName: "cid"))
  var cid: String
  @OptionGroup var output: FetchOutput
  @OptionGroup var size: BlobSize

  func run() throws {
    let (output, limit) = (output, size.maxBlob.bytes)
    let cid = try reading("\"\(cid)\" is no CID") { try CID(self.cid) }
    try options.run { try output.write(await $0.blob(cid, limit: limit)) }
  }
}

/// `carpack fetch blobs`.
struct FetchBlobsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "blobs", abstract: "The CIDs of the blobs that the server lists, one a line.",
    discussion: Help.discussion(
      """
      Exit status: 0; 10 the list may not be whole; 69 the account or its server is not to be had.
      """,
      examples: [
        "carpack fetch blobs alice.example.com",
        "carpack fetch blobs alice.example.com --json",
        "carpack fetch blobs alice.example.com | wc -l",
      ],
      environment: .network))

  @OptionGroup var options: FetchOptions
  @Flag(help: "Write JSON, one object a line.")
  var json = false

  func run() throws {
    let (common, json) = (options.common, json)
    try options.run { account in
      let (cids, isDoubtful) = try await account.blobs()
      for cid in cids {
        if json {
          FetchCommand.report.print((account.did, latest: nil, blob: cid))
        } else {
          Console.print("\(cid)")
        }
      }
      if isDoubtful {
        common.say(
          .warning, "the server's list may not be whole, or has entries that are no CIDs")
      }
    }
  }
}

/// `carpack fetch latest`.
struct FetchLatestCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "latest", abstract: "The newest commit: its revision and its CID.",
    discussion: Help.discussion(
      """
      Exit status: 0; 69 the account or its server is not to be had.
      """,
      examples: [
        "carpack fetch latest alice.example.com",
        "carpack fetch latest alice.example.com --json",
        "carpack fetch latest alice.example.com --pds https://old.example.com",
      ],
      environment: .network))

  @OptionGroup var options: FetchOptions
  @Flag(help: "Write JSON, one object a line.")
  var json = false

  func run() throws {
    let json = json
    try options.run { account in
      let latest = try await account.latestCommit()
      guard json else { return Console.print("\(latest.rev) \(latest.cid)") }
      FetchCommand.report.print((account.did, latest, blob: nil))
    }
  }
}

/// `carpack fetch document`.
struct FetchDocumentCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "document", abstract: "The DID document, as it is received.",
    discussion: Help.discussion(
      """
      Exit status: 0; 69 there is no such account.
      """,
      examples: [
        "carpack fetch document alice.example.com",
        "carpack fetch document did:web:example.com -o did.json",
        "carpack fetch document alice.example.com | python3 -m json.tool",
      ],
      environment: .network))

  @OptionGroup var options: FetchOptions
  @OptionGroup var output: FetchOutput

  func run() throws {
    let output = output
    try options.run { try output.write(.memory([$0.document()])) }
  }
}

/// `carpack fetch plc-log`.
struct FetchPLCLogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plc-log",
    abstract: "The account's history in the PLC directory, as it is received.",
    discussion: Help.discussion(
      """
      "carpack identity" shows it, checked. Exit status: 0; 69 the directory does not know the account.
      """,
      examples: [
        "carpack fetch plc-log alice.example.com -o log.json",
        "carpack fetch plc-log did:plc:w3pvxhp5ga2ax32lkbfrxakv",
        "carpack verify-proof proof.car --identity log.json",
      ],
      environment: .network))

  @OptionGroup var options: FetchOptions
  @OptionGroup var output: FetchOutput

  func run() throws {
    let output = output
    try options.run { try output.write(.memory([await $0.plcLog()])) }
  }
}
