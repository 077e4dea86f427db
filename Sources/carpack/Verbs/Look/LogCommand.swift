internal import ArgumentParser
internal import Extraction
internal import Files
internal import Remote
internal import SystemPackage
internal import Terminal

/// `carpack log`: every snapshot that an archive holds.
struct LogCommand: ReportingCommand {
  static let page = ManualPage("log", PackageResources.log_txt)

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var accountOption: AccountOption

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    if let (file, selector) = try selectedRecord() {
      return try Failure.naming(RemoteArchive.shown(file)) {
        let opened = try OpenedArchive(file, argument.limits.limits, argument.store)
        return try opened.checkingFetched { try show(selector, in: opened) }
      }.finish()
    }
    let isOne = argument.archives.isOne
    try argument.archives.each { opened in
      try opened.showSnapshots(of: accountOption.account, json: json, isNamed: !isOne)
    }.finish(common, good: "read")
  }

  /// The archive, and the record whose history is requested; nil for all snapshots.
  ///
  /// The last argument names a record if it is not a file, and reads like one.
  private func selectedRecord() throws -> (file: String, selector: String)? {
    guard argument.paths.count == 2, let word = argument.paths.last,
      !AtomicFile.isTaken(FilePath(word)), !RemoteArchive.shown(word).hasSuffix(".zst"),
      !RemoteArchive.isFolder(word),
      case .records = try Selector(word)
    else { return nil }
    return (argument.paths[0], word)
  }
}
