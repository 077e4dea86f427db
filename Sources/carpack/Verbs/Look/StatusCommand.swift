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

/// `carpack status`: the state of all archives of a folder.
struct StatusCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("status", PackageResources.status_txt)
  static let settings = [
    Setting(name: "max-age", kind: .text)
  ]

  @Option(
    help: ArgumentHelp("Warn of accounts whose last backup is older: 26h, 7d.", valueName: "age"))
  var maxAge: Age?

  @Option(
    help: ArgumentHelp("Write metrics to this file; \"-\" for standard output.", valueName: "file"),
    completion: .file())
  var prometheus: String?

  @Argument(
    help: ArgumentHelp(
      "Folders or archives (default: the configured output, or else this folder); also s3://bucket/prefix/, s3:// and https:// addresses.",
      valueName: "folder"),
    completion: .directory)
  var folders: [String] = []

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if prometheus == "-", json {
      throw ValidationError("--json and --prometheus - both write to standard output")
    }
  }

  func run() throws {
    var report = StatusReport()
    let status: ExitStatus
    do {
      status = try look(into: &report)
    } catch let error where Failure.isOurs(error) {
      let failure = Failure(error)
      failure.say()
      status = failure.status
    }
    if let prometheus {
      // Also after an error: otherwise the metrics of an earlier run would look good for ever.
      let text = DownloadedFile.memory([Array(report.metrics(endingWith: status).utf8)])
      try text.write(to: prometheus, replacing: true)
    }
    try status.finish()
  }

  /// Looks at the archives, and prints their state.
  ///
  /// - Returns: The exit status for all of them.
  private func look(into report: inout StatusReport) throws -> ExitStatus {
    let places = folders.isEmpty ? try Configuration.ofUser()?.places ?? ["."] : folders
    let archives = NamedArchives(paths: places, limits: ArchiveLimits(), store: store)
    let now = Moment(Host.now)
    let outcomes: NamedArchives.Outcomes
    do {
      outcomes = try archives.each(opening: { file in
        do {
          let opened = try OpenedArchive(file, ArchiveLimits(), store)
          let status = try opened.checkingFetched {
            try ArchiveStatus(
              of: opened.reader, history: opened.history, path: opened.path, now: now,
              maximumAge: maxAge?.seconds)
          }
          report.rows.append((opened.name, status, nil))
          return .worst(Self.statuses[status.verdict] ?? .incomplete, opened.verdict)
        } catch {
          let failure = Failure(error)
          report.rows.append((RemoteArchive.shown(file), nil, failure))
          // What is known without a key counts.
          let path = FilePath(file)
          guard failure.status == .loginRefused, !RemoteArchive.isAddress(file) else { throw error }
          let (isDamaged, loss) = (
            VerificationMark(of: path)?.verdict == .damaged, WrittenSize.loss(of: path)
          )
          guard isDamaged || loss != nil else { throw error }
          failure.say()
          if isDamaged {
            Console.say(.damaged, "\(file) was damaged when it was last verified")
          }
          let status = loss.map { OpenedArchive.say($0, of: path, named: file, file.shellWord) }
          return .worst(isDamaged ? .damaged : .success, status ?? .success)
        }
      })
    } catch let failure as Failure where folders.isEmpty && failure.status == .noInput {
      // Where nothing is yet, what is configured says what is to come.
      _ = try sayPlans(report)
      throw failure
    }
    if json {
      for row in report.rows { StatusReport.report.print(row) }
    } else if prometheus != "-" {
      report.printText(common)
    }
    let absent = folders.isEmpty ? try sayPlans(report) : 0
    return .worst(outcomes.worst, absent > 0 ? .incomplete : .success)
  }

  /// Prints which accounts of the configuration have no archive here, and when the next backup is.
  ///
  /// - Returns: How many accounts have none.
  private func sayPlans(_ report: StatusReport) throws -> Int {
    let configured = try Configuration.ofUser()?.allAccounts()
    configured?.failures.forEach { $0.say() }
    let absent = (configured?.accounts ?? []).filter { !report.has($0) }
    for account in absent {
      common.say(.warning, "\(account.text) is configured, but has no archive here")
    }
    if !json, let time = try Schedule()?.time {
      common.say("the next backup begins at \(time.text)\(Schedule.leeway)")
    }
    return absent.count
  }

  /// The exit status for the state of an archive, apart from what is missing.
  private static let statuses: [ArchiveStatus.Verdict: ExitStatus] = [
    .complete: .success, .notGenuine: .notGenuine, .damaged: .damaged,
  ]
}
