internal import ATProtocol
internal import Failures
internal import Files
internal import HTTP
internal import IPLD
internal import Reports
internal import Restore
internal import Snapshots
internal import Synchronization
internal import SystemPackage
internal import Terminal
internal import XRPC

/// Shows what happens while an account is restored: in words on standard error, or as events in
/// JSON on standard output, one object a line.
final class RestoreDisplay: Sendable {
  private let common: CommonOptions
  /// Shows progress in a line, or nothing.
  private let showProgress: @Sendable (Progress) -> Void
  /// When progress was written as JSON last.
  private let lastProgress = Mutex<ContinuousClock.Instant?>(nil)
  private static let progressInterval: Duration = .seconds(1)

  init(_ common: CommonOptions) {
    self.common = common
    showProgress = ProgressLine.sharedObserver(quiet: common.quiet)
  }

  /// Restores an account, shows what happens, and says how it ended.
  ///
  /// - Parameters:
  ///   - snapshot: what is restored.
  ///   - archive: the file of the archive that it is in, beside which the journal is.
  ///   - options: how.
  ///   - networkOptions: the way to servers.
  /// - Throws: ``ExitStatus``, or what ended it before there was a report.
  func restore(
    _ snapshot: ArchivedSnapshot, in archive: FilePath, _ options: RestoreOptions,
    _ networkOptions: NetworkOptions
  ) throws {
    defer { Console.endProgress() }
    var networkOptions = networkOptions
    let observer = networkOptions.observer
    networkOptions.observer = { event in
      if case .wait(let host, let seconds, let why) = event {
        self.show(.waiting(seconds: seconds, why: "\(host): \(why)"))
      }
      observer(event)
    }
    let (report, error): (RestoreReport, (any Error)?) = try runBlocking { [networkOptions] in
      var restore = AccountRestore(
        snapshot, in: archive, options, network: try Network(networkOptions)
      ) { self.show($0) }
      do {
        try await restore.run()
        return (restore.report, nil)
      } catch {
        return (restore.report, error)
      }
    }
    let failure = error.map { Failure($0) }
    let ways =
      report.stoppedBefore.map(RestoreContinuation.after)
      ?? error.map(RestoreContinuation.after) ?? []
    finish(report, failure, ways.map(ContinuedCommand.line))
    if error != nil, let status = Interruption.received { throw status }
    try ExitStatus.end(with: failure?.status ?? (report.isWhole ? .success : .incomplete))
  }

  /// Shows an event.
  func show(_ event: RestoreEvent) {
    switch event {
    case .source(let source):
      let snapshot = source.archived.snapshot
      Self.tell(Self.source, source) {
        common.say(
          "\(source.did), \(snapshot.rev.map { "revision \($0)" } ?? "no revision"), made \(snapshot.createdAt): \(Quantity.count(source.recordCount, "record")), \(Quantity.grouped(source.heldBlobCount)) of \(Quantity.count(source.blobs.entries.count, "blob")), CAR \(Quantity.bytes(source.byteCount))"
        )
      }
    case .server(let server):
      let limit = server.facts.blobLimit.map { ", blobs up to \(Quantity.bytes($0))" } ?? ""
      Self.tell(Self.server, server) { common.say("\(server.url) is \(server.facts.did)\(limit)") }
    case .step(let step, let answer, let wasDone):
      Self.tell(Self.step, (step, answer, wasDone)) {
        common.say(
          "\(wasDone ? "=" : "✓") \(step.sentence)\(answer.isEmpty ? "" : ": \(answer)")")
      }
    case .progress(let progress):
      guard Console.isJSON else { return showProgress(progress) }
      if isTimeForProgress { Self.tell(Self.progress, progress) {} }
    case .waiting(let seconds, let why):
      Self.tell(Self.waiting, (seconds, why)) {
        Console.say(.note, "waiting \(Quantity.duration(seconds: seconds)): \(why)")
      }
    case .changes(let old, let new):
      let changes = old.changes(to: new)
      Self.tell(Self.changes, changes) { sayChanges(changes) }
    case .operation(let operation, let old, let new):
      let (json, changes) = (operation.operation.json(pretty: true), old.changes(to: new))
      Self.tell(Self.operation, (json, changes)) {
        Console.say("the operation:\n\(json)")
        sayChanges(changes)
      }
    case .document(let json, let url): Self.show(document: json, at: url)
    case .warning(let text): Self.tell(Self.warning, text) { common.say(.warning, text) }
    case .rewritable(let blobs, let records):
      show(
        .warning(
          "blobs that the server lacks without reporting it: \(blobs); it accepts them only when no record refers to them: --rewrite-records deletes those records (\(records)) and writes them again, with the same keys, values and CIDs"
        ))
    }
  }

  /// Shows a document that the user has to publish.
  static func show(document json: String, at url: String) {
    tell(Self.document, (json, url)) {
      Console.say("publish this at \(url), then the restore continues:\n\(json)")
    }
  }

  private func sayChanges(_ changes: [String]) {
    Console.say("what it changes:")
    for change in changes { Console.say("  \(change)") }
  }

  /// Reports an event: as an object, or in words.
  private static func tell<Subject>(
    _ report: Report<Subject>, _ subject: Subject, _ sayIt: () -> Void
  ) {
    guard Console.isJSON else { return sayIt() }
    report.print(subject)
    Console.flush()
  }

  /// Whether a second has passed since progress was written.
  private var isTimeForProgress: Bool {
    lastProgress.withLock { last in
      let now = ContinuousClock.now
      guard last.map({ now - $0 >= Self.progressInterval }) ?? true else { return false }
      last = now
      return true
    }
  }

  /// Shows the result for a record.
  func show(_ path: RecordPath, _ outcome: RecordRestore.Outcome) {
    Self.tell(Self.record, (path, outcome)) {
      Console.print("\(path): \(outcome.said.sentence)")
      Console.flush()
    }
  }

  /// Reports the result, whether it finished or not.
  ///
  /// - Parameters:
  ///   - failure: what ended it; nil if nothing did.
  ///   - commands: the commands that continue the restore.
  private func finish(_ report: RestoreReport, _ failure: Failure?, _ commands: [String]) {
    Console.endProgress()
    let places = report.situation?.sentences ?? []
    Self.tell(Self.finished, (report, failure, commands)) {
      report.unrestored.say()
      for line in Self.lines(report) { Console.print(line) }
      let lacks = report.has(.account) ? "lacks" : "would lack"
      for loss in report.losses { Console.print("the account \(lacks): \(loss)") }
      if failure == nil { for place in places { Console.print(place) } }
      if report.stoppedBefore != nil {
        Console.say(.unfinished, "waiting for your confirmation")
      }
    }
    failure?.say()
    if failure != nil, !Console.isJSON {
      for place in places { Console.say("state: \(place)") }
    }
    Self.say(commands)
  }

  private static func lines(_ report: RestoreReport) -> [String] {
    var lines: [String] = []
    if let equal = report.areRecordsEqual, let source = report.source {
      lines.append(
        "records: \(equal ? "all \(Quantity.grouped(source.recordCount)) as in the archive" : "not as in the archive")"
      )
    }
    if report.has(.blobs) || report.equalBlobs > 0 {
      lines.append(
        "blobs: \(Quantity.grouped(report.sentBlobs)) sent (\(Quantity.bytes(report.sentBytes))), \(Quantity.grouped(report.equalBlobs)) read back and equal, \(Quantity.grouped(report.unrestored.count)) missing or wrong there"
      )
    }
    if report.hasFormerSignature {
      lines.append(
        "signature: of a key that the DID no longer names, until the owner's next write; relays and app views may refuse the account until then, and --yes sign has the server sign now"
      )
    }
    return lines
  }
}

extension UnrestoredBlobs {
  /// Prints the blobs that are missing or wrong on the new server.
  func say() {
    for blob in first.prefix(Console.maximumTold) {
      Console.say(
        .missing, "\(blob.cid)\(blob.record.map { " of \($0)" } ?? ""): \(blob.reason.sentence)")
    }
    let more = count - Console.maximumTold
    if more > 0 { Console.say(.missing, "and \(Quantity.grouped(more)) more; --json lists them") }
  }
}
