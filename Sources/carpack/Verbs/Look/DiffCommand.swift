internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Extraction
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal

/// `carpack diff`: what changed between two snapshots of an account.
struct DiffCommand: ReportingCommand {
  static let page = ManualPage("diff", PackageResources.diff_txt)

  @OptionGroup var archive: ArchiveArgument

  // Not only words: -1 is the newest.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp(
      "One snapshot, or two: number, date, revision or CID.", valueName: "snapshot"))
  var snapshots: [String] = []

  @Flag(name: .customLong("text"), help: "Show the content of the records, before and after.")
  var showsText = false

  @OptionGroup var accountOption: AccountOption

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if let option = snapshots.first(where: { $0.hasPrefix("-") && Int($0) == nil }) {
      throw ValidationError("Unknown option '\(option)'")
    }
    if snapshots.count > 2 {
      throw ValidationError("diff compares two snapshots, but \(snapshots.count) were given")
    }
  }

  func run() throws {
    if let file = snapshots.first(where: { $0.hasSuffix(".car.zst") }) {
      throw Failure(
        "diff compares two snapshots of one archive: \(file) is a second archive",
        hint:
          "\"carpack merge \(archive.file.shellWord) \(file.shellWord) -o NEW\" puts the snapshots of both into one",
        status: .usage)
    }
    try archive.read(compare)
  }

  private func compare(_ opened: OpenedArchive) throws {
    let selectors = try snapshots.map { text throws in try SnapshotSelector(text) }
    let history = try opened.usableHistory()
    let pair = try history.pair(selectors, of: try history.account(accountOption.account))
    let (old, new) = (try opened.snapshot(pair.old), try opened.snapshot(pair.new))
    let diff: SnapshotDiff
    do {
      diff = try SnapshotDiff.compare(
        old, new, visit: { try show($0, in: opened.reader) },
        observer: ProgressLine.observer(quiet: common.quiet))
    } catch let error as MSTDiffError
      where error.problem.kind == .missing
      && !(error.side == .old ? old : new).snapshot.isComplete
    {
      // It was not in the CAR in the first place: nothing has been damaged since.
      throw Failure(
        "\(error)", hint: "its CAR was incomplete when it was packed", status: .incomplete)
    }
    let blobs = try diff.blobChanges(old, new)
    for blob in blobs { show(blob) }
    if json {
      Self.summary.print((pair.old, pair.new, diff))
    } else {
      Console.print(
        "\(history.name(of: pair.new.did)), \(Self.name(pair.old)) to \(Self.name(pair.new)): "
          + "\(Quantity.count(diff.createdCount, "record")) created, \(Quantity.grouped(diff.updatedCount)) updated, "
          + "\(Quantity.grouped(diff.deletedCount)) deleted; \(Quantity.count(diff.addedBlobs.count, "blob")) added, "
          + "\(Quantity.grouped(diff.goneBlobs.count)) gone")
    }
    let gaps = diff.gaps.map { gap in
      ("in the \(gap.side == .old ? "old" : "new") snapshot \(gap.what)", gap.isDamage)
    }
    let status = opened.say(gaps)
    if diff.gapCount > diff.gaps.count {
      Console.say(
        .incomplete, "and \(Quantity.grouped(diff.gapCount - diff.gaps.count)) more like these")
    }
    let isDamaged = blobs.contains { if case .damaged = $0.state { true } else { false } }
    try ExitStatus.worst(status, opened.status, isDamaged ? .damaged : .success).finish()
  }

  /// Prints a record that is not the same in both snapshots.
  private func show(_ change: MSTDiff.RecordChange, in reader: ArchiveReader) throws {
    guard !json else { return Self.record.print(change) }
    Console.print(
      change.old == nil ? .plus : change.new == nil ? .minus : .change, change.path)
    guard showsText else { return }
    for (sign, cid) in [("-", change.old), ("+", change.new)] {
      guard let cid else { continue }
      // What is damaged or missing is named at the end.
      let text = try unlessDamaged { try reader.body(of: cid).flatMap(Self.text) }
      Console.print(named: "    \(sign) \((text ?? nil) ?? "?")")
    }
  }

  /// What a record says: its text, or else all of it as JSON.
  private static func text(of body: [UInt8]) -> String? {
    do throws(DAGCBORError) {
      let record = try DAGCBORDecoder.decode(body.span)
      return record["text"]?.string ?? record.json()
    } catch { return nil }
  }

  /// Prints a blob that was added or is gone.
  private func show(_ change: SnapshotDiff.BlobChange) {
    guard !json else { return Self.blob.print(change) }
    let (blob, isAdded, state) = change
    let size = state.size(declared: blob.size).map { Quantity.bytes($0) } ?? "-"
    let mark = state.isHeld ? "" : "  [\(state.word)]"
    Console.print(
      isAdded ? .plus : .minus, "\(blob.cid)  \(blob.mimeType ?? "-")  \(size)\(mark)")
  }

  private static func name(_ entry: SnapshotHistory.Entry) -> String {
    "number \(entry.number)" + (entry.rev.map { " (\($0.text))" } ?? "")
  }

  // MARK: JSON

  static let record = Report<MSTDiff.RecordChange>(
    "diff", "`carpack diff`: a record that changed."
  ) {
    Field("kind", "", .one(of: "record")) { _ in "record" }
    Field("change", "how", .one(of: "created", "updated", "deleted")) {
      $0.old == nil ? "created" : $0.new == nil ? "deleted" : "updated"
    }
    Field("path", "collection/rkey") { $0.path }
    Field("old", "the record before") { $0.old }
    Field("new", "the record after") { $0.new }
  }

  static let blob = Report<SnapshotDiff.BlobChange>("diff", "Or a blob that was added or is gone.")
  {
    Field("kind", "", .one(of: "blob")) { _ in "blob" }
    Field("change", "how", .one(of: "added", "gone")) { $0.isAdded ? "added" : "gone" }
    Field("cid", "the blob") { $0.blob.cid }
    Field("path", "the first record that refers to it") { $0.blob.firstRecord }
    Field("type", "its media type") { $0.blob.mimeType }
    Field("size", "its bytes") { $0.state.size(declared: $0.blob.size) }
    Field("state", "whether the archive holds it", .one(of: "held", "missing", "damaged")) {
      $0.state.word
    }
  }

  private static let end = Fields<SnapshotHistory.Entry> {
    Field("number", "its number") { $0.number }
    Field("manifest", "its manifest") { $0.cid }
    Field("commit", "its commit") { $0.commit }
    Field("rev", "its revision") { $0.rev?.text }
    Field("createdAt", "when it was made") { $0.createdAt }
  }

  static let summary = Report<
    (old: SnapshotHistory.Entry, new: SnapshotHistory.Entry, diff: SnapshotDiff)
  >("diff", "At the end, the totals.") {
    Field("kind", "", .one(of: "summary")) { _ in "summary" }
    Field("account", "the account") { $0.new.did }
    Field("old", "the first snapshot", { $0.old }, as: end)
    Field("new", "the second", { $0.new }, as: end)
    Field("created", "records created") { $0.diff.createdCount }
    Field("updated", "records updated") { $0.diff.updatedCount }
    Field("deleted", "records deleted") { $0.diff.deletedCount }
    Field("blobsAdded", "blobs added") { $0.diff.addedBlobs.count }
    Field("blobsGone", "blobs gone") { $0.diff.goneBlobs.count }
    Field("nodesCreated", "tree nodes created") { $0.diff.createdNodeCount }
    Field("nodesDeleted", "tree nodes deleted") { $0.diff.deletedNodeCount }
    Field("complete", "whether all could be compared") { $0.diff.gapCount == 0 }
  }
}
