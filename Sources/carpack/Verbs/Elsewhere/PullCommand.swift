internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Remote
internal import SystemPackage

/// `carpack pull`: an archive from a bucket or a web server.
struct PullCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "pull",
    _superCommandName: Carpack.name,
    abstract: "Bring an archive that lies here up to date with one in a bucket or on a web server.",
    discussion: Help.discussion(
      """
      A file that is an earlier state of the archive is gone on with: what it lacks is fetched, verified section by section, and only then counts. A file that is not there is made under a temporary name and gets its own when all of it is verified. One that is the same already takes one request. What is no earlier state is replaced with --replace only.

      A file that ends in a write that was not finished is left alone: the next backup, or "carpack repair", takes up what is whole of it.

      Exit status: 0 the file is the archive or a later state of it, 11 what came is damaged (the file is as it was), 13 the file is something else, 66 there is nothing at the address, 69 it is not to be had, 73 another process writes to the file, 75 it was replaced while it was fetched, 77 no keys were found or they are not enough.
      """,
      examples: [
        "carpack pull s3://archives/alice.example.com.car.zst alice.example.com.car.zst",
        "carpack pull https://archives.example.com/alice.car.zst alice.car.zst",
      ], environment: .store))

  @Argument(
    help: ArgumentHelp("Where it lies: s3://bucket/key or https://….", valueName: "address"))
  var address: String

  @Argument(
    help: ArgumentHelp("The file.", valueName: "archive"), completion: .file(extensions: ["zst"]))
  var file: String

  @Flag(help: "Replace a file that is no earlier state of the archive.")
  var replace = false

  @OptionGroup var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      RemoteArchive.isAddress(address), "\"\(address)\" is no address: s3://bucket/key or https://…"
    )
  }

  func run() throws {
    let pull = try ArchivePull(
      address, to: FilePath(file), store.options, network: StoreArguments.network(),
      replaces: replace, observer: ProgressLine.sharedObserver(quiet: common.quiet))
    let shown = RemoteArchive.shown(address)
    let report = try Failure.naming(shown) { try pull.run() }
    Console.endProgress()
    if json { return Self.report.print((file, shown, report)) }
    common.say("\(file): \(report.sentence(other: shown, "fetched", " and verified"))")
  }

  static let report = Report<(file: String, address: String, result: TransferReport)>(
    "pull", "`carpack pull`."
  ) {
    ArchiveFields.file { $0.file }
    Field("address", "where the archive lies elsewhere, without a query") { $0.address }
    Field(
      "outcome", "what was done; `ahead`: the file is a later state of the archive",
      .one(of: "unchanged", "ahead", "created", "appended", "replaced")
    ) { $0.result.outcome.rawValue }
    Field("bytes", "bytes of the file") { $0.result.count }
    Field("fetched", "bytes that were fetched") { $0.result.transferred }
  }
}
