internal import ATProtocol
internal import ArgumentParser
internal import ObjectStore
internal import Remote
internal import SystemPackage

/// `carpack push`: an archive into a bucket.
struct PushCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "push",
    _superCommandName: Carpack.name,
    abstract: "Bring an archive in a bucket up to date with one that lies here.",
    discussion: Help.discussion(
      """
      If the object is an earlier state of the archive, only what is new is sent. The store makes a new object of that and of the old one, which it has. The new object replaces the old one at once, and only if no other writer was there in between. Below 5 MiB all of it is sent. If nothing is new, this takes one request.

      What is no earlier state, such as the archive before it was compacted, is replaced with --replace only: the archive is sent under another name, NAME.carpack-new, read back, and then put in place by the store. With --verify the object is read back in any case, all of it, and what is damaged is replaced.

      Before something is written, the store is tried with an object of its own beside the archive: one that takes no notice of conditions would let two writers overwrite each other. It is refused unless --exclusive says that nothing else writes there. That a bucket's store obeys is remembered for a day.

      Keys are looked for as Amazon's tools do: in the environment, in ~/.aws/credentials and ~/.aws/config, in the container, on the instance. No program is started for them. "s3://bucket/folder/" keeps the file's name.

      Exit status: 0 the object is the archive or a later state of it, 11 the archive is damaged, 13 the object is something else, or the store refuses, 66 the file or the bucket is not there, 69 the store is not to be had, 73 another process writes to the object, 75 another writer was faster, again and again, 77 no keys were found or they are not enough.
      """,
      examples: [
        "carpack push alice.example.com.car.zst s3://archives/alice.example.com.car.zst",
        "carpack push --verify alice.example.com.car.zst s3://archives/",
        "carpack push --endpoint-url https://minio.example.com a.car.zst s3://archives/a.car.zst",
      ], environment: .store))

  @Argument(
    help: ArgumentHelp("The archive.", valueName: "archive"), completion: .file(extensions: ["zst"])
  )
  var file: String

  @Argument(help: ArgumentHelp("Where it goes: s3://bucket/key.", valueName: "address"))
  var address: String

  @Flag(help: "Read all of the object back and compare it; replace what is damaged.")
  var verify = false

  @Flag(help: "Replace an object that is no earlier state of the archive.")
  var replace = false

  @OptionGroup var exclusive: ExclusiveOption

  @OptionGroup var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let place = try BucketAddress(address).naming(FilePath(file).lastComponent?.string ?? "")
    let push = try Failure.naming(file) {
      try ArchivePush(
        FilePath(file),
        to: BucketDestination(
          place, store.options, network: StoreArguments.network(),
          isExclusive: exclusive.exclusive, cache: Host.cacheFolder),
        isVerifying: verify, replaces: replace,
        observer: ProgressLine.sharedObserver(quiet: common.quiet))
    }
    let report = try runBlocking { try await push.run() }
    Console.endProgress()
    if json { return Self.report.print((file, place, report)) }
    let words = report.sentence(other: file, "sent")
    common.say("\(place): \(words)\(report.isVerified ? "; read back and compared" : "")")
  }

  static let report = Report<(file: String, place: BucketAddress, result: TransferReport)>(
    "push", "`carpack push`."
  ) {
    ArchiveFields.file { $0.file }
    Field("address", "where the archive lies elsewhere, without a query") { "\($0.place)" }
    Field(
      "outcome", "what was done; `ahead`: the object is a later state of the archive",
      .one(of: TransferReport.Outcome.self)
    ) { $0.result.outcome.rawValue }
    Field("bytes", "bytes of the object") { $0.result.count }
    Field("sent", "bytes that were sent") { $0.result.transferred }
    Field("verified", "whether all of it was read back and compared") { $0.result.isVerified }
  }
}

extension TransferReport {
  /// What was done, in words.
  ///
  /// - Parameters:
  ///   - other: what was to be brought here or there.
  ///   - moved: what was done with bytes.
  ///   - ending: what else was done with them.
  func sentence(other: String, _ moved: String, _ ending: String = "") -> String {
    let (size, part) = (Quantity.bytes(count), Quantity.bytes(transferred))
    return switch outcome {
    case .unchanged: "up to date, \(size)"
    case .ahead: "has all of \(other), and more: \(size)"
    case .created: "\(size) \(moved)\(ending)"
    case .appended: "\(part) appended\(ending), \(size) now"
    case .replaced: "replaced, \(part) \(moved)\(ending)"
    case .healed: "was damaged; replaced, \(part) \(moved)\(ending)"
    }
  }
}

/// That nothing else writes to an object.
struct ExclusiveOption: ParsableArguments {
  @Flag(
    help:
      "Write also to a store that takes no notice of conditions: nothing else writes there.")
  var exclusive = false
}
