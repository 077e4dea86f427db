internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import HTTP
internal import ObjectStore
internal import Remote
internal import Snapshots
internal import Terminal

/// `carpack serve`: archives as a read-only personal data server, and as pages.
struct ServeCommand: ReportingCommand {
  static let page = ManualPage("serve", PackageResources.serve_txt)

  @Option(
    help: ArgumentHelp(
      "Where to listen: an address of this machine, a port (0 for any free port), or both. Addresses other than loopback can be reached from other machines.",
      valueName: "address:port"))
  var bind = BindAddress()

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Another name of the server; with https:// in front, also the address that DID documents name. May be repeated.",
      valueName: "name"))
  var hostname: [String] = []

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "A website that may read the API in a browser, such as https://app.example.com, or \"*\" for all. Without it all may, or none if an archive is sealed. May be repeated.",
      valueName: "origin"))
  var allowOrigin: [Origin] = []

  @Option(
    name: .customLong("at"), parsing: .unconditional,
    help: ArgumentHelp(
      "The snapshot of each account to serve, instead of the newest: a date, a revision, a number or a CID.",
      valueName: "snapshot"))
  var at: String?

  @Flag(help: "Name this server in DID documents as the accounts' server.")
  var impersonate = false

  @Option(
    help: ArgumentHelp(
      "Write a line for each request to a file, \"-\" for standard error.", valueName: "file"),
    completion: .file())
  var log: String?

  @Flag(help: "Serve counters for Prometheus at /metrics.")
  var metrics = false

  @Argument(
    help: ArgumentHelp(
      "Archives; folders and bucket prefixes are searched for archives.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var paths: [String]

  @OptionGroup var limits: LimitOptions

  @OptionGroup var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if let at { _ = try SnapshotSelector(at) }
  }

  func run() throws {
    try ServeProgram.serve("everything", paths, bind, limits, store, reporting) { json in
      json.field("hostnames", hostname)
      json.field("allowedOrigins", allowOrigin.map(\.text))
      json.field("snapshot", at)
      json.field("impersonates", impersonate)
      json.field("log", log)
      json.field("hasMetrics", metrics)
    }
  }
}

extension ServeProgram {
  /// Continues as a server.
  ///
  /// - Parameters:
  ///   - offer: what the server offers.
  ///   - paths: archives, and folders to look for archives in.
  ///   - bind: where it listens.
  ///   - limits: how much archives may hold.
  ///   - store: how to reach object stores.
  ///   - reporting: the form of messages and results.
  ///   - writeFields: writes the other options.
  /// - Throws: ``Failure`` if there is no such file, or the program is not installed.
  static func serve(
    _ offer: String, _ paths: [String], _ bind: BindAddress, _ limits: LimitOptions,
    _ store: StoreArguments, _ reporting: ReportOptions, _ writeFields: (inout JSONWriter) -> Void
  ) throws {
    // What is wrong with one of them is reported as by every verb.
    let options = store.options
    let network = try StoreArguments.network()
    for path in paths where !BlobFolder.isFolder(path) {
      try Failure.naming(RemoteArchive.shown(path)) {
        if RemoteArchive.isFolder(path) {
          _ = try RemoteArchive.archives(in: path, options, network: network)
        } else {
          _ = try OpenedArchive(path, limits.limits, store)
        }
      }
    }
    try run("serve") { json in
      json.field("offer", offer)
      json.field("paths", paths)
      json.field("host", bind.host)
      json.field("port", bind.port)
      json.field("allowsLarge", limits.allowLarge)
      json.field("isQuiet", reporting.common.quiet)
      json.field("isJSON", reporting.json)
      json.field("tool", Program.tool)
      if paths.contains(where: RemoteArchive.isAddress) {
        json.field("certificates", network.caFile)
        json.key("store")
        json.beginObject()
        json.field("endpoint", options.endpoint)
        json.field("region", options.region)
        json.field("profile", options.profile)
        json.field("isUnsigned", options.isUnsigned)
        if let inPath = options.namesBucketInPath { json.field("namesBucketInPath", inPath) }
        json.endObject()
      }
      writeFields(&json)
    }
  }
}
