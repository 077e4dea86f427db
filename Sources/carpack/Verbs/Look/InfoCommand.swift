internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal

/// `carpack info`: what an archive is, from its footers and manifests alone.
struct InfoCommand: ReportingCommand {
  static let page = ManualPage("info", PackageResources.info_txt)

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let isOne = argument.archives.isOne
    try argument.archives.each { opened in
      let snapshots = try opened.snapshots(choice)
      if json {
        let history = try opened.history
        let shown = try snapshots.map { try self.shown($0, history) }
        Self.report.print((opened, try Self.head(opened), history.entries.count, shown))
      } else if isOne {
        try printText(opened, snapshots)
      } else {
        try printLine(opened, snapshots)
      }
      return opened.status
    }.finish(common)
  }

  /// One of several archives, in a line.
  private func printLine(_ opened: OpenedArchive, _ snapshots: [ArchivedSnapshot]) throws {
    let count = try opened.history.entries.count
    var parts = [Quantity.bytes(opened.reader.fileSize), Quantity.count(count, "snapshot")]
    if let only = snapshots.first?.snapshot, snapshots.count == 1 {
      parts.append(only.handle?.text ?? only.did.text)
      parts.append(Quantity.count(only.counts.records, "record"))
      parts.append(
        "\(Quantity.grouped(only.blobs.held)) of \(Quantity.count(only.blobs.referenced, "blob"))")
      parts.append("made \(only.createdAt)")
    } else {
      parts.append(Quantity.count(snapshots.count, "account"))
    }
    Console.print("\(opened.name): \(parts.joined(separator: ", "))")
  }

  private func row(_ name: String, _ text: String) {
    Console.print("  \(name)\(String(repeating: " ", count: max(1, 12 - name.count)))\(text)")
  }

  private func printText(_ opened: OpenedArchive, _ snapshots: [ArchivedSnapshot]) throws {
    let generation = opened.reader.generation
    Console.print("\(opened.name): \(Quantity.bytes(opened.reader.fileSize))")
    row(
      "content",
      "\(Quantity.bytes(generation.streamLength)) in \(Quantity.count(Int(clamping: generation.sectionCount), "section")), stored in \(Quantity.percent(generation.committedLength, of: generation.streamLength))"
    )
    row("generation", "\(generation.number), format 1.\(generation.minorVersion)")
    row("head", try Self.head(opened).map { "\($0)" } ?? "lost")
    let history = try opened.history
    if let first = history.entries.first, history.entries.count > 1 {
      let accounts = history.newestOfAccounts.count
      row(
        "snapshots",
        "\(Quantity.grouped(history.entries.count))\(accounts > 1 ? " of \(accounts) accounts" : ""), the first made \(first.createdAt)"
      )
    }
    for snapshot in snapshots {
      if snapshots.count > 1 { Console.print("") }
      printText(snapshot, history)
    }
  }

  private func printText(_ archived: ArchivedSnapshot, _ history: SnapshotHistory) {
    let snapshot = archived.snapshot
    if history.entries.count > 1, let cid = archived.cid,
      let entry = history.entries.first(where: { $0.cid == cid })
    {
      row("snapshot", "number \(entry.number), \(cid)")
    }
    row("account", snapshot.did.text)
    if let handle = snapshot.handle { row("handle", handle.text) }
    if let pds = snapshot.pds { row("server", pds) }
    row("revision", snapshot.rev?.text ?? "none")
    row("commit", "\(snapshot.commit)")
    if !snapshot.createdAt.isEmpty { row("made", "\(snapshot.createdAt) by \(snapshot.tool)") }
    row(
      "repository",
      "\(Quantity.count(snapshot.counts.records, "record")), \(Quantity.count(snapshot.counts.blocks, "block")), \(Quantity.bytes(snapshot.car.byteCount)) as a CAR"
        + (snapshot.isComplete ? "" : ", incomplete"))
    let blobs = snapshot.blobs
    row(
      "blobs",
      "\(Quantity.grouped(blobs.held)) of \(Quantity.grouped(blobs.referenced)) held, \(Quantity.bytes(blobs.heldBytes))"
        + (blobs.unaccepted == 0 ? "" : ", \(Quantity.grouped(blobs.unaccepted)) missing")
        + (blobs.acceptance.map { ", \($0)" } ?? "")
        + (blobs.extras > 0
          ? ", \(Quantity.count(blobs.extras, "extra")) of \(Quantity.bytes(blobs.extrasBytes))"
          : ""))
    if let fault = blobs.listFault { row("incomplete", fault.sentence) }
    printPrivateData(of: archived)
  }

  /// What is the account owner's alone, a line for each method.
  private func printPrivateData(of archived: ArchivedSnapshot) {
    guard archived.snapshot.privateData != nil else { return }
    let data: PrivateData
    do {
      guard let found = try archived.privateData() else { return }
      data = found
    } catch {
      return row("private", "damaged: \(error)")
    }
    row(
      "private",
      data.isEmpty
        ? "nothing that the server gives"
        : "\(Quantity.bytes(data.byteCount)); \"carpack extract --private\" gives it back")
    for entry in data.entries {
      let size =
        entry.answers.isEmpty
        ? "nothing" : "\(Quantity.bytes(entry.byteCount)) of \(entry.fetchedAt)"
      let fault = entry.fault.map { ", \($0.sentence)" } ?? ""
      Console.print("    \(entry.endpoint): \(size)\(fault)")
    }
  }

  /// The archive head; nil if its manifest is lost.
  private static func head(_ opened: OpenedArchive) throws -> CID? {
    let history = try opened.history
    guard let head = opened.reader.generation.head?.cid else {
      return history.newest?.cid
    }
    return history.newest?.cid == head ? head : nil
  }

  typealias Shown = (
    number: Int?, cid: CID?, snapshot: Snapshot, privateData: PrivateData?
  )

  private func shown(_ archived: ArchivedSnapshot, _ history: SnapshotHistory) throws -> Shown {
    (
      history.entries.first { $0.cid == archived.cid }?.number, archived.cid, archived.snapshot,
      try archived.privateData()
    )
  }

  private static let snapshot = Fields<Shown>("Snapshot") {
    Field("number", "its number, from 1 for the oldest") { $0.number }
    Field("manifest", "its manifest") { $0.cid }
    SnapshotFields.manifest.of { $0.snapshot }
    Field(
      optional: "private", "what the server gave to the account's owner alone",
      each: { shown in
        shown.snapshot.privateData.map { _ in shown.privateData?.entries ?? [] }
      }, as: privateEntry)
  }

  private static let privateEntry = Fields<PrivateData.Entry> {
    Field("endpoint", "the method that gave it") { $0.endpoint }
    Field("fetchedAt", "when, RFC 3339") { $0.fetchedAt }
    Field("contentType", "the media type, as the server named it") { $0.contentType }
    Field("answers", "answers, one a page") { $0.answers.count }
    Field("bytes", "their bytes") { $0.byteCount }
    Field(
      optional: "fault", "why there is nothing, or not everything", { $0.fault },
      as: Fields {
        Field("kind", "what it means", .one(of: PrivateData.Fault.Kind.self)) {
          $0.kind.rawValue
        }
        Field("why", "why") { $0.why }
      })
  }

  static let report = Report<
    (opened: OpenedArchive, head: CID?, snapshotCount: Int, snapshots: [Shown])
  >("info", "`carpack info`: what an archive is.") {
    ArchiveFields.file { $0.opened.name }
    Field("bytes", "the size of the file") { $0.opened.reader.fileSize }
    Field("committedBytes", "of these, up to the last footer") {
      $0.opened.reader.generation.committedLength
    }
    Field("streamBytes", "the length of its content, a CAR") {
      $0.opened.reader.generation.streamLength
    }
    Field("sections", "its sections") { $0.opened.reader.generation.sectionCount }
    Field("generations", "successful writes") { $0.opened.reader.generation.number }
    Field("formatVersion", "FORMAT's version") {
      "1.\($0.opened.reader.generation.minorVersion)"
    }
    Field("indexSegments", "index segments in use") {
      $0.opened.reader.generation.segments.count
    }
    ArchiveFields.head { $0.head }
    Field("snapshotCount", "snapshots in the file") { $0.snapshotCount }
    // For archives with one account, which most are.
    Field(
      "snapshot", "the newest of those shown", orNull: { $0.snapshots.first }, as: snapshot)
    Field(
      "snapshots", "of each account the newest, or those that --at and --account choose",
      each: { $0.snapshots }, as: snapshot)
  }
}
