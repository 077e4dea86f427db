internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
internal import Live
internal import Remote
internal import Reports
internal import SystemPackage
internal import Terminal
internal import Verification

/// `carpack status`: how all archives of a folder stand.
struct StatusCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    _superCommandName: Carpack.name,
    abstract: "Say how the archives of a folder stand: whose, how old, what is missing.",
    usage: "carpack status [<options>] [<folder> ...]",
    discussion: Help.discussion(
      """
      Looks at every archive (*.car.zst) in FOLDER and the folders within, or at the archives named. Reads footers and newest manifests only: "carpack verify" checks the content. The age is the time since a backup last found that the server has nothing newer, or since the newest snapshot was made. Of an archive elsewhere only the snapshot counts, and when it was verified is not known: both are noted on files.

      With --max-age an account whose backup is older is overdue. With --prometheus the same is written as metrics, for the text folder of a node exporter; the file is replaced in one step.

      EXIT STATUS
        0   every backup is complete and, with --max-age, new enough
        10  something is missing, or a backup is overdue
        11  an archive is damaged, or was when it was last verified
        12  an account was put back or forked, or its handle leads elsewhere, and nobody has accepted that
        66  there is no such file, object or folder
        69  an archive elsewhere cannot be reached now
        77  a store, or a web server, does not let it be read
      """,
      examples: [
        "carpack status",
        "carpack status /srv/backups --max-age 26h",
        "carpack status /srv/backups --prometheus /var/lib/node_exporter/carpack.prom",
      ]))

  @Argument(
    help: ArgumentHelp(
      "Folders of archives, or archives; also s3://bucket/prefix/, s3:// and https:// addresses (default: this folder).",
      valueName: "folder"),
    completion: .directory)
  var folders: [String] = []

  @Option(
    help: ArgumentHelp("Warn of accounts whose last backup is older: 26h, 7d.", valueName: "age"))
  var maxAge: Age?

  @Option(
    help: ArgumentHelp("Write metrics to this file; \"-\" for standard output.", valueName: "file"),
    completion: .file())
  var prometheus: String?

  @OptionGroup var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if prometheus == "-", json {
      throw ValidationError("--json and --prometheus - both want standard output")
    }
  }

  func run() throws {
    let archives = NamedArchives(
      paths: folders.isEmpty ? ["."] : folders, limits: ArchiveLimits(), store: store)
    let now = Moment(Host.now)
    var report = StatusReport(now: now, maximumAge: maxAge?.seconds)
    let outcomes = try archives.each(opening: { file in
      do {
        let opened = try OpenedArchive(file, ArchiveLimits(), store)
        let status = try opened.checkingFetched {
          try ArchiveStatus(of: opened.reader, history: opened.history, path: opened.path)
        }
        report.add(opened.name, status)
        return .worst(report.verdict(of: status), opened.status)
      } catch {
        report.add(unreadable: RemoteArchive.shown(file), Failure(error))
        throw error
      }
    })
    if json {
      report.printJSON()
    } else if prometheus != "-" {
      report.printText(common)
    }
    try writeMetrics(report)
    if outcomes.worst != .success { throw outcomes.worst }
  }

  private func writeMetrics(_ report: StatusReport) throws {
    guard let prometheus else { return }
    let text = Array(report.metrics.utf8)
    if prometheus == "-" {
      Console.print(text.span)
    } else {
      try DownloadedFile.memory([text]).save(to: FilePath(prometheus), replacing: true)
    }
  }
}
