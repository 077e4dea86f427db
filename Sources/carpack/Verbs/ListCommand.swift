internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// `carpack ls`: what an archive holds, and what it should hold and does not.
struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls",
    abstract: "List what an archive holds: path, CID, type, size; missing things are marked.",
    discussion: """
      Without a flag, records and then blobs. A blob stands under the first record that refers to it; an extra blob, to which none does, under "-". With --json one object a line.

      Exit status: 0, or 10 if something that is listed is missing, 11 if it is damaged.
      """)

  @OptionGroup var archive: ArchiveArgument

  @Flag(help: "List the records only.")
  var records = false

  @Flag(help: "List the blobs only.")
  var blobs = false

  @Flag(help: "List the snapshots only.")
  var snapshots = false

  @Flag(help: "List what is missing or damaged only.")
  var missing = false

  @Flag(help: "Write JSON, one object a line.")
  var json = false

  @OptionGroup var common: CommonOptions

  func run() throws {
    let opened = try archive.open()
    let archived = try opened.snapshot()
    if snapshots {
      listSnapshot(archived)
      if opened.status != .success { throw ExitStatus.damaged }
      return
    }
    let all = !records && !blobs
    var listing = Listing(isJSON: json, showsOnlyMissing: missing)
    let restored = try RestoredRepository(
      archived, observer: ProgressLine.observer(quiet: common.quiet))
    let inspection = try restored.withBytes { bytes throws(CARError) in
      try RepositoryInspector.inspect(
        bytes, verifying: false,
        visit: { record in
          guard records || all else { return }
          listing.add(
            Listing.Row(
              path: String(decoding: record.key, as: UTF8.self), cid: record.cid, kind: "record",
              type: "application/vnd.ipld.dag-cbor",
              state: record.body.map { .held(UInt64($0.count)) } ?? .missing))
        })
    }
    if blobs || all {
      for entry in inspection.blobs.entries {
        listing.add(
          Listing.Row(
            path: entry.firstRecord, cid: entry.cid, kind: "blob", type: entry.mimeType,
            state: archived.state(of: entry.cid), declaredSize: entry.size))
      }
      for extra in try archived.extras() {
        listing.add(
          Listing.Row(
            path: "-", cid: extra, kind: "extra", type: nil, state: archived.state(of: extra)))
      }
    }
    if let flaw = restored.flaw {
      Console.say(
        "carpack: \(Console.red("damaged:")) the repository is not whole, this is what is left of it: \(flaw)"
      )
    } else if !inspection.missingNodes.isEmpty {
      common.say(
        "carpack: \(Console.yellow("incomplete:")) \(Quantity.count(inspection.missingNodes.count, "tree node")) missing, and all records below"
      )
    }
    let lacksRecords = (records || all) && !inspection.isComplete
    let status = ExitStatus.worst(
      listing.worst, opened.status, restored.isExact ? .success : .damaged,
      lacksRecords || !inspection.missingNodes.isEmpty ? .incomplete : .success)
    if status != .success { throw status }
  }

  private func listSnapshot(_ archived: ArchivedSnapshot) {
    let snapshot = archived.snapshot
    if json {
      var json = JSONWriter()
      json.beginObject()
      json.field("manifest", archived.cid.map { "\($0)" })
      snapshot.writeFields(to: &json)
      json.endObject()
      json.newline()
      Console.print(&json)
    } else {
      Console.print(
        "\(snapshot.createdAt)  \(snapshot.did.text)  \(snapshot.rev?.text ?? "-")  \(Quantity.count(snapshot.counts.records, "record"))  \(Quantity.grouped(snapshot.blobs.held)) of \(Quantity.count(snapshot.blobs.referenced, "blob"))"
      )
    }
  }
}

/// Prints rows as they come.
private struct Listing {
  struct Row {
    let path: String
    let cid: CID
    let kind: String
    let type: String?
    let state: BlobState
    var declaredSize: Int?
  }

  let isJSON: Bool
  let showsOnlyMissing: Bool
  private(set) var worst = ExitStatus.success
  private var json = JSONWriter()

  init(isJSON: Bool, showsOnlyMissing: Bool) {
    self.isJSON = isJSON
    self.showsOnlyMissing = showsOnlyMissing
  }

  mutating func add(_ row: Row) {
    let mark: String?
    var size = row.declaredSize.map { UInt64($0) }
    switch row.state {
    case .held(let length):
      if showsOnlyMissing { return }
      mark = nil
      size = length
    case .missing:
      mark = "missing"
      worst = .worst(worst, .incomplete)
    case .damaged:
      mark = "damaged"
      worst = .damaged
    }
    if isJSON {
      json.beginObject()
      json.field("kind", row.kind)
      json.field("path", row.path == "-" ? nil : row.path)
      json.field("cid", "\(row.cid)")
      json.field("type", row.type)
      json.field("size", size.map { Int(clamping: $0) })
      json.field("state", mark ?? "held")
      json.endObject()
      json.newline()
      Console.print(&json)
    } else {
      let type = row.kind == "record" ? "record" : row.type ?? "-"
      let size = size.map { Quantity.bytes($0) } ?? "-"
      Console.print("\(row.path)  \(row.cid)  \(type)  \(size)\(mark.map { "  [\($0)]" } ?? "")")
    }
  }
}
