internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup

/// `carpack info`: what an archive is, from its footer and manifest alone.
struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Say what an archive is: sizes, ratio, sections, generations, head, snapshot.",
    discussion:
      "Reads the footer and the manifest only, and checks nothing else; see \"carpack verify\".")

  @OptionGroup var archive: ArchiveArgument

  @Flag(help: "Write JSON.")
  var json = false

  @OptionGroup var common: CommonOptions

  func run() throws {
    let opened = try archive.open()
    let generation = opened.reader.generation
    let snapshot = try opened.snapshot()
    if json { printJSON(opened, snapshot) } else { printText(opened, generation, snapshot) }
    let status = opened.status
    if status != .success { throw status }
  }

  private func printText(
    _ opened: ArchiveArgument.Opened, _ generation: Generation, _ archived: ArchivedSnapshot
  ) {
    func row(_ name: String, _ text: String) {
      Console.print("  \(name)\(String(repeating: " ", count: max(1, 12 - name.count)))\(text)")
    }
    let snapshot = archived.snapshot
    Console.print("\(opened.input.name): \(Quantity.bytes(opened.reader.fileSize))")
    row(
      "content",
      "\(Quantity.bytes(generation.streamLength)) in \(Quantity.count(Int(clamping: generation.sectionCount), "section")), stored in \(Quantity.percent(generation.committedLength, of: generation.streamLength))"
    )
    row("generation", "\(generation.number), format 1.\(generation.minorVersion)")
    row("head", archived.cid.map { "\($0)" } ?? "lost")
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
        + (blobs.missing > 0 ? ", \(Quantity.grouped(blobs.missing)) missing" : "")
        + (blobs.extras > 0
          ? ", \(Quantity.count(blobs.extras, "extra")) of \(Quantity.bytes(blobs.extrasBytes))"
          : ""))
  }

  private func printJSON(_ opened: ArchiveArgument.Opened, _ archived: ArchivedSnapshot) {
    let generation = opened.reader.generation
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("file", opened.input.name)
    json.field("bytes", opened.reader.fileSize)
    json.field("committedBytes", generation.committedLength)
    json.field("streamBytes", generation.streamLength)
    json.field("sections", generation.sectionCount)
    json.field("generations", generation.number)
    json.field("formatVersion", "1.\(generation.minorVersion)")
    json.field("indexSegments", generation.segments.count)
    json.field("archiveHead", archived.cid.map { "\($0)" })
    json.key("snapshot")
    json.beginObject()
    archived.snapshot.writeFields(to: &json)
    json.endObject()
    json.endObject()
    json.newline()
    Console.print(&json)
  }
}
