internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Remote
internal import Reports
internal import SystemPackage
internal import Terminal

/// `carpack pull`: an archive from a bucket or a web server.
struct PullCommand: ReportingCommand {
  static let page = ManualPage("pull", PackageResources.pull_txt)

  @Flag(help: "Replace a file that is damaged or not an earlier state of the archive.")
  var replace = false

  @Argument(
    help: ArgumentHelp("The address: s3://bucket/key or https://….", valueName: "address"))
  var address: String

  @Argument(
    help: ArgumentHelp("The file.", valueName: "archive"), completion: .file(extensions: ["zst"]))
  var file: String

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      RemoteArchive.isAddress(address),
      "\"\(address)\" is not an address: use s3://bucket/key or https://…"
    )
  }

  func run() throws {
    let pull = try ArchivePull(
      address, to: FilePath(file), store.options, network: StoreArguments.network(),
      replaces: replace, observer: ProgressLine.sharedObserver(quiet: common.quiet))
    let shown = RemoteArchive.shown(address)
    let report = try Failure.naming(shown) {
      do {
        return try pull.run()
      } catch let error as PushError where error.isOfEnd {
        try refuseOther()
        throw error
      }
    }
    Console.endProgress()
    if json { return Self.report.print((file, shown, report)) }
    common.say("\(file): \(report.sentence(other: shown, "fetched", " and verified"))")
    if let words = report.words(onKeysOf: file, and: shown) { common.say(words) }
  }

  /// Refuses what does not end like an archive and is none, as the verbs do that read archives.
  private func refuseOther() throws {
    do {
      _ = try OpenedArchive(address, ArchiveLimits(), store)
    } catch is any ArchiveFileError {
      // It is an archive, though it cannot be read as it is.
    }
  }

  static let report = Report<(file: String, address: String, result: TransferReport)>(
    "pull", "`carpack pull`."
  ) {
    ArchiveFields.file { $0.file }
    Field("address", "the address of the remote archive, without a query") { $0.address }
    Field(
      "outcome", "what was done; `ahead`: the file is a later state of the archive",
      .one(of: "unchanged", "ahead", "created", "appended", "replaced")
    ) { $0.result.outcome.rawValue }
    Field("bytes", "bytes of the file") { $0.result.count }
    Field("fetched", "bytes that were fetched") { $0.result.transferred }
    TransferReport.keysField { $0.result }
  }
}
