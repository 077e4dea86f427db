internal import ATProtocol
internal import ArgumentParser
internal import ObjectStore
internal import Remote
internal import Reports
internal import SystemPackage
internal import Terminal

/// `carpack push`: an archive into a bucket.
struct PushCommand: ReportingCommand {
  static let page = ManualPage("push", PackageResources.push_txt)

  @Flag(help: "Read the whole object back and compare it; replace what is damaged.")
  var verify = false

  @Flag(help: "Replace an object that is not an earlier state of the archive.")
  var replace = false

  @Argument(
    help: ArgumentHelp("The archive.", valueName: "archive"), completion: .file(extensions: ["zst"])
  )
  var file: String

  @Argument(help: ArgumentHelp("Where it goes: s3://bucket/key.", valueName: "address"))
  var address: String

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var exclusive: ExclusiveOption

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
    if let words = report.words(onKeysOf: file, and: "\(place)") { common.say(words) }
  }

  static let report = Report<(file: String, place: BucketAddress, result: TransferReport)>(
    "push", "`carpack push`."
  ) {
    ArchiveFields.file { $0.file }
    Field("address", "the address of the remote archive, without a query") { "\($0.place)" }
    Field(
      "outcome", "what was done; `ahead`: the object is a later state of the archive",
      .one(of: TransferReport.Outcome.self)
    ) { $0.result.outcome.rawValue }
    Field("bytes", "bytes of the object") { $0.result.count }
    Field("sent", "bytes that were sent") { $0.result.transferred }
    Field("verified", "whether all of it was read back and compared") { $0.result.isVerified }
    TransferReport.keysField { $0.result }
  }
}

extension TransferReport {
  /// What was done, in words.
  ///
  /// - Parameters:
  ///   - other: the archive to copy from.
  ///   - moved: the verb for the bytes: fetched or sent.
  ///   - ending: what else was done with the bytes.
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

extension TransferReport {
  /// What was done where two copies differed in who can open the archive; nil where they did not.
  func words(onKeysOf file: String, and other: String) -> String? {
    keys.map { keys in
      switch keys {
      case .kept: "who can open it was changed in \(file), and not in \(other): that counts"
      case .taken: "who can open it was changed in \(other), and not in \(file): that counts"
      }
    }
  }

  static func keysField<Subject>(
    _ report: @escaping @Sendable (Subject) -> TransferReport
  ) -> Field<Subject> {
    Field(
      optional: "keys",
      "set if two copies of a sealed archive differed in who can open it; the keys that were changed more often count: `kept`, those of the file; `taken`, those at the address",
      .one(of: TransferReport.Keys.self)
    ) { report($0).keys?.rawValue }
  }
}

/// The user's assurance that nothing else writes to an object.
struct ExclusiveOption: ParsableArguments {
  @Flag(
    help:
      "Write even to a store without conditional writes: nothing else writes there.")
  var exclusive = false
}
