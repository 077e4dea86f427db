internal import ArgumentParser
internal import Files
internal import Reports
internal import Repository
internal import Terminal
internal import Verification

/// `carpack inspect`: what is in a CAR, is it whole, is it well-formed.
struct InspectCommand: ReportingCommand {
  static let page = ManualPage("inspect", PackageResources.inspect_txt)

  @Flag(help: "List every record: path and CID.")
  var records = false

  @Flag(help: "List every blob that records refer to: CID, media type, size, record.")
  var blobs = false

  @Argument(
    help: ArgumentHelp(
      "The CAR, version 1 or 2, plain or compressed (.car.gz, .car.zst); \"-\" for standard input.",
      valueName: "repo.car"),
    completion: .file(extensions: ["car"]))
  var input: String

  @OptionGroup var signer: SignerOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    try CARInput.refuseAddress(input)
    let file = try CARInput.open(InputFile(input, isReadAtOnce: true))
    let observer = ProgressLine.observer(quiet: common.quiet)
    let car = try Failure.naming(file.name) {
      try CARFile(file.mapped) { done in
        observer(Progress(stage: "checking", done: UInt64(done), total: UInt64(file.count)))
      }
    }
    let report = InspectReport(file, car, self)
    try report.walk()
    if json { InspectReport.report.print(report) } else { report.printText() }
    Console.endProgress()
    let inspection = report.inspection
    let signed = try report.signed.get()
    var status: ExitStatus = inspection.isWhole ? .success : .incomplete
    if !inspection.isWellFormed {
      status = .damaged
      for flaw in inspection.flaws { Failure(flaw, status: status).say() }
    } else if !inspection.isComplete {
      common.say(.incomplete, Quantity.lacking(inspection))
    }
    if let error = inspection.tooLong {
      let failure = Failure(error).of(file.name)
      failure.say()
      status = .worst(status, failure.status)
    }
    common.say(inspection.unreadable)
    CARInput.say(report.archivedCommits, inspection, common)
    for (record, why) in inspection.recordWarnings.prefix(20) {
      common.say(.warning, "\(record): \(why)")
    }
    if inspection.recordWarningCount > 20 {
      common.say(
        .warning, "and \(Quantity.grouped(inspection.recordWarningCount - 20)) more like these")
    }
    if let signed, signed.isHeld == false {
      Console.say(.notGenuine, "\(file.name): \(signed.why)")
      throw ExitStatus.worst(status, .notGenuine)
    }
    try status.finish()
  }
}
