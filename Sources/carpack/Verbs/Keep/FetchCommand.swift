internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import IPLD
internal import Live
internal import Reports
internal import SystemPackage
internal import Terminal
internal import XRPC

/// `carpack fetch`: the raw pieces of a live account.
struct FetchCommand: Verb {
  static let page = ManualPage(
    "fetch", PackageResources.fetch_txt,
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

  @OptionGroup var login: LoginOptions

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

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

/// How a list is written.
struct FetchListOptions: ParsableArguments {
  @Flag(help: "Write JSON, one object per line.")
  var json = false
}

/// `carpack fetch repo`.
struct FetchRepoCommand: Verb {
  static let page = ManualPage("repo", PackageResources.fetch_repo_txt)

  @Option(help: ArgumentHelp("Only what has changed since this revision.", valueName: "rev"))
  var since: String?

  @OptionGroup var output: FetchOutput

  @OptionGroup var size: RepositorySize

  @OptionGroup var options: FetchOptions

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
struct FetchBlobCommand: Verb {
  static let page = ManualPage("blob", PackageResources.fetch_blob_txt)

  @OptionGroup var output: FetchOutput

  @OptionGroup var size: BlobSize

  @OptionGroup var options: FetchOptions

  @Argument(help: ArgumentHelp("The blob's CID.", valueName: "cid"))
  var cid: String

  func run() throws {
    let (output, limit) = (output, size.maxBlob.bytes)
    let cid = try reading("\"\(cid)\" is not a CID") { try CID(self.cid) }
    try options.run { try output.write(await $0.blob(cid, limit: limit)) }
  }
}

/// `carpack fetch blobs`.
struct FetchBlobsCommand: Verb {
  static let page = ManualPage("blobs", PackageResources.fetch_blobs_txt)

  @OptionGroup var list: FetchListOptions

  @OptionGroup var options: FetchOptions

  func run() throws {
    let (common, json) = (options.common, list.json)
    try options.run { account in
      let (cids, malformedCount, failure) = try await account.blobs()
      for cid in cids {
        if json {
          FetchCommand.report.print((account.did, latest: nil, blob: cid))
        } else {
          Console.print("\(cid)")
        }
      }
      if let failure { throw failure }
      guard malformedCount > 0 else { return }
      common.say(.incomplete, "the server's list has entries that are not CIDs (\(malformedCount))")
      throw ExitStatus.incomplete
    }
  }
}

/// `carpack fetch latest`.
struct FetchLatestCommand: Verb {
  static let page = ManualPage("latest", PackageResources.fetch_latest_txt)

  @OptionGroup var list: FetchListOptions

  @OptionGroup var options: FetchOptions

  func run() throws {
    let json = list.json
    try options.run { account in
      let latest = try await account.latestCommit()
      guard json else { return Console.print("\(latest.rev) \(latest.cid)") }
      FetchCommand.report.print((account.did, latest, blob: nil))
    }
  }
}

/// `carpack fetch document`.
struct FetchDocumentCommand: Verb {
  static let page = ManualPage("document", PackageResources.fetch_document_txt)

  @OptionGroup var output: FetchOutput

  @OptionGroup var options: FetchOptions

  func run() throws {
    let output = output
    try options.run { try output.write(.memory([$0.document()])) }
  }
}

/// `carpack fetch plc-log`.
struct FetchPLCLogCommand: Verb {
  static let page = ManualPage("plc-log", PackageResources.fetch_plc_log_txt)

  @OptionGroup var output: FetchOutput

  @OptionGroup var options: FetchOptions

  func run() throws {
    let output = output
    try options.run { try output.write(.memory([await $0.plcLog()])) }
  }
}
