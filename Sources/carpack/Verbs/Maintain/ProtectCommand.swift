internal import Archive
internal import ArgumentParser
internal import Reports
internal import SystemPackage
internal import Terminal

/// `carpack protect`: parity, so that an archive can heal itself.
struct ProtectCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("protect", PackageResources.protect_txt)
  static let settings = ParityOptions.settings

  @Option(
    help: ArgumentHelp(
      "How much parity: 5% heals damage of up to 4% in one piece.", valueName: "percent"))
  var parity = Percentage(5)

  @OptionGroup var archives: ChangedArchives

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    // The configuration may say so, for new archives.
    guard parity.number > 0 else {
      throw Failure(
        "with --parity 0 nothing would be added: parity is never taken away",
        hint: "name a percentage from 1 on: --parity 5%", status: .usage)
    }
    try archives.each(common) { file in
      let result = try ArchiveWriter.protect(
        FileStorage.openArchive(FilePath(file)), percent: parity.number)
      guard !json else { return Self.report.print((file, parity.number, result)) }
      let (generation, bytesAdded) = result
      common.say(
        bytesAdded == 0
          ? "\(file): protected already, with \(parity.number) % parity"
          : "\(file): protected with \(parity.number) % parity, \(Quantity.bytes(bytesAdded)) added, \(Quantity.bytes(generation.committedLength)) now"
      )
    }
  }

  static let report = Report<(file: String, percent: Int, all: ArchiveWriter.Protection)>(
    "protect", "`carpack protect`."
  ) {
    ArchiveFields.file { $0.file }
    Field("parity", "how much parity there is, in percent") { $0.percent }
    Field("bytes", "the size of the archive") { $0.all.generation.committedLength }
    Field("bytesAdded", "by how many bytes it grew") { $0.all.bytesAdded }
  }
}
