internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import IPLD
internal import Snapshots

/// `carpack info`: what an archive is, from its footers and manifests alone.
struct InfoCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    _superCommandName: Carpack.name,
    abstract: "Say what an archive is: sizes, ratio, sections, generations, head, snapshot.",
    usage: "carpack info [<options>] <archive> ...",
    discussion: Help.discussion(
      """
      Shows the newest snapshot of each account, or the one that --at and --account choose. Reads footers and manifests only, and checks nothing else; see "carpack verify".
      """,
      examples: [
        "carpack info alice.example.com.car.zst",
        "carpack info backups/",
        "carpack info --at 2026-01-01 --json alice.example.com.car.zst",
      ]))

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let isOne = argument.archives.isOne
    try argument.archives.each { opened in
      let snapshots = try opened.snapshots(choice)
      if json {
        try printJSON(opened, snapshots)
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

  private func printJSON(_ opened: OpenedArchive, _ snapshots: [ArchivedSnapshot]) throws {
    let generation = opened.reader.generation
    let history = try opened.history
    var json = JSONWriter.ofResults
    json.begin(.info)
    json.field("file", opened.name)
    json.field("bytes", opened.reader.fileSize)
    json.field("committedBytes", generation.committedLength)
    json.field("streamBytes", generation.streamLength)
    json.field("sections", generation.sectionCount)
    json.field("generations", generation.number)
    json.field("formatVersion", "1.\(generation.minorVersion)")
    json.field("indexSegments", generation.segments.count)
    json.field("archiveHead", try Self.head(opened).map { "\($0)" })
    json.field("snapshotCount", history.entries.count)
    // The newest of those shown, for archives with one account, which most are.
    json.key("snapshot")
    try write(snapshots.first, history, to: &json)
    json.beginArray("snapshots")
    for snapshot in snapshots { try write(snapshot, history, to: &json) }
    json.endArray()
    Console.finish(&json)
  }

  private func write(
    _ archived: ArchivedSnapshot?, _ history: SnapshotHistory, to json: inout JSONWriter
  ) throws {
    guard let archived else {
      json.null()
      return
    }
    json.beginObject()
    json.field("number", history.entries.first { $0.cid == archived.cid }?.number)
    json.field("manifest", archived.cid.map { "\($0)" })
    archived.snapshot.writeFields(to: &json)
    if archived.snapshot.privateData != nil { try write(archived.privateData(), to: &json) }
    json.endObject()
  }

  private func write(_ data: PrivateData?, to json: inout JSONWriter) {
    json.beginArray("private")
    for entry in data?.entries ?? [] {
      json.beginObject()
      json.field("endpoint", entry.endpoint)
      json.field("fetchedAt", entry.fetchedAt)
      json.field("contentType", entry.contentType)
      json.field("answers", entry.answers.count)
      json.field("bytes", entry.byteCount)
      if let fault = entry.fault {
        json.beginObject("fault")
        json.field("kind", fault.kind.rawValue)
        json.field("why", fault.why)
        json.endObject()
      }
      json.endObject()
    }
    json.endArray()
  }
}
