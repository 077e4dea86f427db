internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import SystemPackage

/// `carpack repair`: what can be made right again is, and nothing else is touched.
struct RepairCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "repair",
    abstract:
      "Make damaged indexes and footers again, and drop what an interrupted write has left.",
    discussion: """
      Indexes and footers say nothing that the data does not, so damaged ones are made again, byte for byte, where they lay. What an interrupted write has left behind the last snapshot is completed if it is a whole snapshot, and cut off if it is not ("carpack pack" would take up its whole blocks; to keep them, pack again instead of repairing). Bytes that are in order are never written to.

      Damaged data cannot be made again. "carpack verify" says what is lost with it, and everything else can still be read.

      Exit status: 0 the archive's frames are in order now, 11 data is damaged, 73 the file cannot be written to.
      """)

  @Argument(
    help: ArgumentHelp("The archive.", valueName: "file"), completion: .file(extensions: ["zst"]))
  var file: String

  @Flag(help: "Write a report as JSON.")
  var json = false

  @OptionGroup var common: CommonOptions

  func run() throws {
    let observer = ProgressLine.observer(quiet: common.quiet)
    let report = try ArchiveRepair.run(FileStorage.open(FilePath(file))) { done, total in
      observer(Progress(stage: "examining", done: done, total: total))
    }
    Console.endProgress()
    if json { printJSON(report) } else { printText(report) }
    if let lost = report.firstLost {
      Failure(
        "\(file): \(lost)",
        hint: "\"carpack verify\" says what is lost with it; everything else can still be read",
        status: .damaged
      ).say()
      throw ExitStatus.damaged
    }
  }

  private func printText(_ report: ArchiveRepair.Report) {
    if report.isUnchanged { return common.say("\(file): nothing to repair") }
    var done: [String] = []
    if !report.segments.isEmpty {
      done.append("\(Quantity.count(report.segments.count, "index segment")) made again")
    }
    if !report.footers.isEmpty {
      done.append("\(Quantity.count(report.footers.count, "footer")) made again")
    }
    if report.bytesCutOff > 0 {
      done.append("\(Quantity.bytes(report.bytesCutOff)) of an interrupted write cut off")
    }
    common.say("\(file): \(done.joined(separator: ", "))")
  }

  private func printJSON(_ report: ArchiveRepair.Report) {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("file", file)
    json.field("segmentsRestored", report.segments.count)
    json.field("footersRestored", report.footers.count)
    json.field("bytesCutOff", report.bytesCutOff)
    json.field("lost", report.firstLost.map { "\($0)" })
    json.endObject()
    json.newline()
    Console.print(&json)
  }
}
