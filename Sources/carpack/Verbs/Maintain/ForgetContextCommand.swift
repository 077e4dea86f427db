internal import Archive
internal import ArgumentParser
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack forget-context`: removes the context of other people from archives.
struct ForgetContextCommand: ReportingCommand {
  static let page = ManualPage("forget-context", PackageResources.forget_context_txt)

  @OptionGroup var archives: ChangedArchives

  @OptionGroup var accountOption: AccountOption

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    try archives.each(common) { file in
      let result = try ContextRemoval.apply(
        to: FileStorage.openArchive(FilePath(file)), name: file
      ) { try $0.account(accountOption.account) }
      if json {
        Self.report.print((file, result))
      } else {
        common.say(
          result.snapshotCount == 0
            ? "\(file): no context to forget"
            : "\(file): context forgotten in \(Quantity.count(result.snapshotCount, "snapshot")), \(Quantity.bytes(result.bytesAdded)) added; \"carpack compact\" removes it from the file"
        )
      }
      try end(with: result.lost, of: file)
    }
  }

  static let report = Report<(file: String, all: ContextRemoval.Report)>(
    "forget-context", "`carpack forget-context`."
  ) {
    ArchiveFields.file { $0.file }
    Field("snapshots", "snapshots whose context is forgotten") { $0.all.snapshotCount }
    Field("bytesAdded", "by how many bytes the file grew") { $0.all.bytesAdded }
    ArchiveFields.head { $0.all.generation.head?.cid }
    ArchiveFields.lost { $0.all.lost }
  }
}
