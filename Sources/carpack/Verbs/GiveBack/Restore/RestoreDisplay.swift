internal import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
internal import Reports
internal import Restore
internal import Snapshots
internal import Synchronization
internal import Terminal
internal import XRPC

/// Shows what happens while an account is restored: in words on standard error, or as events in
/// JSON on standard output, one object a line.
final class RestoreDisplay: Sendable {
  private let common: CommonOptions
  /// The line that shows progress; nil where none is shown.
  private let line: Mutex<ProgressLine?>
  /// When progress was written as JSON last.
  private let lastProgress = Mutex<ContinuousClock.Instant?>(nil)
  private static let progressInterval: Duration = .seconds(1)

  init(_ common: CommonOptions) {
    self.common = common
    let isShown = !common.quiet && !Console.isJSON && Console.canRedraw
    line = Mutex(isShown ? ProgressLine() : nil)
  }

  /// Shows an event.
  func show(_ event: RestoreEvent) {
    if case .rewritable(let blobs, let records) = event {
      return show(
        .warning(
          "the server believes to have \(blobs) blobs that it has not, and takes them again only when no record refers to them: --rewrite-records deletes \(records) records and writes them again, with the same keys, values and CIDs"
        ))
    }
    guard Console.isJSON else { return say(event) }
    if case .progress = event, !isTimeForProgress { return }
    Self.printJSON(event)
  }

  /// Whether a second has gone by since progress was written.
  private var isTimeForProgress: Bool {
    lastProgress.withLock { last in
      let now = ContinuousClock.now
      guard last.map({ now - $0 >= Self.progressInterval }) ?? true else { return false }
      last = now
      return true
    }
  }

  private func say(_ event: RestoreEvent) {
    switch event {
    case .source(let source):
      let snapshot = source.archived.snapshot
      common.say(
        "\(source.did), \(snapshot.rev.map { "revision \($0)" } ?? "no revision"), made \(snapshot.createdAt): \(Quantity.count(source.recordCount, "record")), \(Quantity.grouped(source.heldBlobCount)) of \(Quantity.count(source.blobs.entries.count, "blob")), CAR \(Quantity.bytes(source.byteCount))"
      )
    case .server(let server):
      let limit = server.facts.blobLimit.map { ", blobs up to \(Quantity.bytes($0))" } ?? ""
      common.say("\(server.url) is \(server.facts.did)\(limit)")
    case .step(let step, let answer, let wasDone):
      common.say(
        "\(wasDone ? "=" : "✓") \(step.sentence)\(answer.isEmpty ? "" : ": \(answer)")")
    case .progress(let progress): line.withLock { $0?.update(progress) }
    case .waiting(let seconds, let why):
      Console.say(.note, "waiting \(Quantity.duration(seconds: seconds)): \(why)")
    case .operation(let operation, let old, let new):
      let json = operation.operation.json(pretty: true)
      Console.say("the operation:\n\(json)\nwhat it changes:")
      for change in old.changes(to: new) { Console.say("  \(change)") }
    case .document(let json, let url):
      Console.say("publish this at \(url), and this goes on:\n\(json)")
    case .warning(let text): common.say(.warning, text)
    case .rewritable: break
    }
  }

  private static func printJSON(_ event: RestoreEvent) {
    typealias Reports = RestoreReports
    switch event {
    case .source(let source): Reports.source.print(source)
    case .server(let server): Reports.server.print(server)
    case .step(let step, let answer, let wasDone): Reports.step.print((step, answer, wasDone))
    case .progress(let progress): Reports.progress.print(progress)
    case .waiting(let seconds, let why): Reports.waiting.print((seconds, why))
    case .operation(let operation, let old, let new):
      Reports.operation.print(
        (operation.operation.json(pretty: true), old.changes(to: new)))
    case .document(let json, let url): Reports.document.print((json, url))
    case .warning(let text): Reports.warning.print(text)
    case .rewritable: break
    }
    Console.flush()
  }

  // MARK: The end

  /// Says what came of it, whether it came to its end or not.
  ///
  /// - Parameter failure: what ended it; nil if nothing did.
  func finish(_ report: RestoreReport, _ failure: Failure?) {
    Console.endProgress()
    guard !Console.isJSON else { return printReport(report, failure) }
    for blob in report.unrestored.first.prefix(Console.maximumTold) {
      Console.say(
        .missing, "\(blob.cid)\(blob.record.map { " of \($0)" } ?? ""): \(blob.reason.sentence)")
    }
    let more = report.unrestored.count - Console.maximumTold
    if more > 0 { Console.say(.missing, "and \(Quantity.grouped(more)) more; --json lists them") }
    for line in lines(report) { Console.print(line) }
    if failure == nil, report.has(.account) { for line in report.standing { Console.print(line) } }
    if let question = report.stoppedBefore {
      Console.say(
        .unfinished, "stopped before what cannot be undone; \(question.option) goes on")
    }
    if let failure {
      failure.say()
      for line in report.standing { Console.say("where things are: \(line)") }
    }
  }

  private func lines(_ report: RestoreReport) -> [String] {
    var lines: [String] = []
    if let equal = report.areRecordsEqual, let source = report.source {
      lines.append(
        "records: \(equal ? "all \(Quantity.grouped(source.recordCount)) as in the archive" : "not as in the archive")"
      )
    }
    if report.has(.blobs) || report.equalBlobs > 0 {
      lines.append(
        "blobs: \(Quantity.grouped(report.sentBlobs)) sent (\(Quantity.bytes(report.sentBytes))), \(Quantity.grouped(report.equalBlobs)) read back and equal, \(Quantity.grouped(report.unrestored.count)) not there or not right"
      )
    }
    return lines
  }

  private func printReport(_ report: RestoreReport, _ failure: Failure?) {
    RestoreReports.finished.print((report, failure))
    Console.flush()
    failure?.say()
  }
}

extension RestoreReport {
  /// How the command ends that came to its end.
  var status: ExitStatus {
    stoppedBefore != nil || unrestored.count > unrestored.acceptedCount ? .incomplete : .success
  }
}
