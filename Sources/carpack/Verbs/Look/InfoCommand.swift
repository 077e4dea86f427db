internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
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
        let shown = try snapshots.map { archived -> Shown in
          let entry = history.entries.first { $0.cid == archived.cid }
          return (entry?.number, archived, try archived.privateData())
        }
        Self.report.print((opened, opened.reader.generation, history, shown))
      } else if isOne {
        try printText(opened, snapshots)
      } else {
        try printLine(opened, snapshots)
      }
      return opened.status
    }.finish(common, good: "read")
  }

  /// One of several archives, in a line.
  private func printLine(_ opened: OpenedArchive, _ snapshots: [ArchivedSnapshot]) throws {
    let count = try opened.history.entries.count
    var parts = [Quantity.bytes(opened.reader.fileSize), Quantity.count(count, "snapshot")]
    if let only = snapshots.first?.snapshot, snapshots.count == 1 {
      parts += [
        only.name, Quantity.count(only.counts.records, "record"),
        "\(Quantity.grouped(only.blobs.held)) of \(Quantity.count(only.blobs.referenced, "blob"))",
        "made \(only.createdAt)",
      ]
    } else {
      parts.append(Quantity.count(snapshots.count, "account"))
    }
    Console.print("\(opened.name): \(parts.joined(separator: ", "))")
  }

  private func print(_ rows: [(String, String?)]) { Console.print(rows, width: 12) }

  private func printText(_ opened: OpenedArchive, _ snapshots: [ArchivedSnapshot]) throws {
    let history = try opened.history
    let generation = opened.reader.generation
    let accounts = history.newestOfAccounts.count
    Console.print("\(opened.name): \(Quantity.bytes(opened.reader.fileSize))")
    print([
      (
        "content",
        "\(Quantity.bytes(generation.streamLength)) in \(Quantity.count(Int(clamping: generation.sectionCount), "section")), stored in \(Quantity.percent(generation.committedLength, of: generation.streamLength))"
      ),
      ("generation", "\(generation.number), format 1.\(generation.minorVersion)"),
      ("parity", opened.reader.parityPercent.map { "\($0) %" }),
      ("head", history.head.map { "\($0)" } ?? "lost"),
      (
        "snapshots",
        history.entries.count > 1
          ? "\(Quantity.grouped(history.entries.count))\(accounts > 1 ? " of \(accounts) accounts" : ""), the first made \(history.entries[0].createdAt)"
          : nil
      ),
    ])
    for archived in snapshots {
      if snapshots.count > 1 { Console.print("") }
      let entry = history.entries.first { $0.cid == archived.cid }
      if let entry, history.entries.count > 1 {
        print([("snapshot", "number \(entry.number), \(entry.cid)")])
      }
      printText(archived.snapshot)
      try printPrivateData(of: archived)
      try printContext(of: archived)
    }
  }

  private func printText(_ snapshot: Snapshot) {
    let blobs = snapshot.blobs
    let parts = [
      "\(Quantity.grouped(blobs.held)) of \(Quantity.grouped(blobs.referenced)) held",
      Quantity.bytes(blobs.heldBytes),
      blobs.unaccepted == 0 ? nil : "\(Quantity.grouped(blobs.unaccepted)) missing",
      blobs.acceptance,
      blobs.extras == 0
        ? nil : "\(Quantity.count(blobs.extras, "extra")) of \(Quantity.bytes(blobs.extrasBytes))",
    ]
    print([
      ("account", snapshot.did.text), ("handle", snapshot.handle?.text), ("server", snapshot.pds),
      ("revision", snapshot.rev?.text ?? "none"), ("commit", "\(snapshot.commit)"),
      ("made", snapshot.createdAt.isEmpty ? nil : "\(snapshot.createdAt) by \(snapshot.tool)"),
      (
        "repository",
        "\(Quantity.count(snapshot.counts.records, "record")), \(Quantity.count(snapshot.counts.blocks, "block")), \(Quantity.bytes(snapshot.car.byteCount)) as a CAR"
          + (snapshot.isComplete ? "" : ", incomplete")
      ),
      ("blobs", parts.compactMap(\.self).joined(separator: ", ")),
      ("incomplete", blobs.listFault?.sentence),
    ])
  }

  /// Private data, a line for each method.
  private func printPrivateData(of archived: ArchivedSnapshot) throws {
    do {
      guard let data = try archived.privateData() else { return }
      let size = Quantity.bytes(data.byteCount)
      print([
        (
          "private",
          data.isEmpty
            ? "nothing: the server gave no private data"
            : "\(size); \"carpack extract --private\" gives it back"
        )
      ])
      for entry in data.entries {
        let size =
          entry.answers.isEmpty
          ? "nothing" : "\(Quantity.bytes(entry.byteCount)) of \(entry.fetchedAt)"
        let fault = entry.fault.map { ", \($0.sentence)" } ?? ""
        Console.print("    \(entry.endpoint): \(size)\(fault)")
      }
    } catch {
      print([("private", "damaged: \(try error.flaw())")])
    }
  }

  /// How much context of other accounts there is.
  private func printContext(of archived: ArchivedSnapshot) throws {
    do {
      guard let context = try archived.context() else { return }
      print([
        (
          "context",
          "\(Quantity.count(context.itemCount, "item")) of others, \(Quantity.bytes(context.pieceBytes)) of thumbnails and proofs; \"carpack ls --context\" lists them"
        )
      ])
    } catch {
      print([("context", "damaged: \(try error.flaw())")])
    }
  }

  typealias Shown = (number: Int?, archived: ArchivedSnapshot, privateData: PrivateData?)

  private static let snapshot = Fields<Shown>("Snapshot") {
    Field("number", "its number, from 1 for the oldest") { $0.number }
    Field("manifest", "its manifest") { $0.archived.cid }
    SnapshotFields.manifest.of { $0.archived.snapshot }
    Field(
      optional: "private", "what the server gave to the account's owner alone",
      each: { $0.privateData?.entries }, as: privateEntry)
  }

  private static let privateEntry = Fields<PrivateData.Entry> {
    Field("endpoint", "the method that gave it") { $0.endpoint }
    Field("fetchedAt", "when it was fetched, RFC 3339") { $0.fetchedAt }
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
    (
      opened: OpenedArchive, generation: Generation, history: SnapshotHistory, snapshots: [Shown]
    )
  >("info", "`carpack info`: what an archive is.") {
    ArchiveFields.file { $0.opened.name }
    Field("bytes", "the size of the file") { $0.opened.reader.fileSize }
    Field("committedBytes", "of these, up to the last footer") { $0.generation.committedLength }
    Field("streamBytes", "the length of its content, a CAR") { $0.generation.streamLength }
    Field("sections", "its sections") { $0.generation.sectionCount }
    Field("generations", "successful writes") { $0.generation.number }
    Field("formatVersion", "FORMAT's version") { "1.\($0.generation.minorVersion)" }
    Field("indexSegments", "index segments in use") { $0.generation.segments.count }
    Field("parity", "how much parity protects what is appended, in percent; null for none") {
      $0.opened.reader.parityPercent
    }
    ArchiveFields.head { $0.history.head }
    Field("snapshotCount", "snapshots in the file") { $0.history.entries.count }
    // For archives with one account, which most are.
    Field(
      "snapshot", "the newest of those shown", orNull: { $0.snapshots.first }, as: snapshot)
    Field(
      "snapshots", "of each account the newest, or those that --at and --account choose",
      each: { $0.snapshots }, as: snapshot)
  }
}
