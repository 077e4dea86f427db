internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// `carpack verify`: everything hashed again, walked and accounted for.
struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Verify an archive: every byte of it, the CAR, the tree, every blob.",
    discussion: """
      Checks that the file is made of frames in their one form, that all checksums hold, that every section hashes to its CID, that the index is what the data makes it, that the CAR comes back bit for bit, that the tree keeps its rules and names records that are there, and that every blob referred to is held or noted as missing.

      --quick compares stored bytes with their checksums and believes the manifest. It leaves out decompressing, hashing sections, restoring the CAR, and walking the tree; it finds every damaged byte, but not a file that was made wrong.

      Exit status: 0 intact, 10 something is missing, 11 damaged.
      """)

  @OptionGroup var archive: ArchiveArgument

  @Flag(help: "Check stored bytes against their checksums only.")
  var quick = false

  @Flag(help: "Write JSON.")
  var json = false

  @OptionGroup var common: CommonOptions

  func run() throws {
    let opened = try archive.open()
    let verifier = SnapshotVerifier(observer: ProgressLine.observer(quiet: common.quiet))
    let report = try verifier.verify(opened.reader, quick ? .quick : .full)
    Console.endProgress()
    if json { printJSON(opened.input.name, report) } else { printText(opened.input.name, report) }
    switch report.verdict {
    case .intact: return
    case .incomplete: throw ExitStatus.incomplete
    case .damaged: throw ExitStatus.damaged
    }
  }

  private func printText(_ name: String, _ report: SnapshotVerifier.Report) {
    for finding in report.archive.findings.prefix(100) {
      let mark =
        finding.severity == .damaged ? Console.red("damaged:") : Console.yellow("warning:")
      Console.say("carpack: \(mark) \(finding)")
    }
    if report.archive.findingCount > 100 {
      Console.say("carpack: \(report.archive.findingCount - 100) more findings like these")
    }
    for what in report.damage { Console.say("carpack: \(Console.red("damaged:")) \(what)") }
    for blob in report.damagedBlobs {
      Console.say("carpack: \(Console.red("damaged:")) \(text(blob))")
    }
    for blob in report.missingBlobs {
      Console.say("carpack: \(Console.yellow("missing:")) \(text(blob))")
    }
    if let repository = report.repository {
      for (record, why) in repository.recordWarnings.prefix(20) {
        common.say("carpack: \(Console.yellow("warning:")) \(record): \(why)")
      }
    }
    let verdict =
      switch report.verdict {
      case .intact: Console.green("intact")
      case .incomplete: Console.yellow("incomplete")
      case .damaged: Console.red("damaged")
      }
    Console.print("\(name): \(verdict)")
    let archive = report.archive
    Console.print(
      "  \(Quantity.bytes(archive.byteCount)) in \(Quantity.count(Int(clamping: archive.frameCount), "data frame")), \(Quantity.count(Int(clamping: archive.sectionCount), "section")) \(archive.isComplete ? "hashed" : "not hashed (--quick)")"
        + (archive.unverifiableCount > 0
          ? ", \(archive.unverifiableCount) of them under a hash function that cannot be checked"
          : ""))
    if let snapshot = report.snapshot?.snapshot {
      Console.print(
        "  \(snapshot.handle?.text ?? snapshot.did.text)\(snapshot.rev.map { " at \($0.text)" } ?? ""): \(Quantity.count(snapshot.counts.records, "record")), \(Quantity.grouped(snapshot.blobs.held)) of \(Quantity.count(snapshot.blobs.referenced, "blob")) held"
      )
      if let head = report.snapshot?.cid { Console.print("  head \(head)") }
    }
  }

  private func text(_ blob: SnapshotVerifier.LostBlob) -> String {
    var text = "\(blob.cid)"
    let facts = [blob.mimeType, blob.size.map { Quantity.bytes($0) }].compactMap { $0 }
    if !facts.isEmpty { text += " (\(facts.joined(separator: ", ")))" }
    if let record = blob.record { text += " of \(record)" }
    return "\(text): \(blob.why)"
  }

  private func printJSON(_ name: String, _ report: SnapshotVerifier.Report) {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("file", name)
    json.field("verdict", report.verdict.rawValue)
    json.field("depth", report.archive.isComplete ? "full" : "quick")
    json.field("bytes", report.archive.byteCount)
    json.field("frames", report.archive.frameCount)
    json.field("sections", report.archive.sectionCount)
    json.field("unverifiableSections", report.archive.unverifiableCount)
    json.field("archiveHead", report.snapshot?.cid.map { "\($0)" })
    json.key("snapshot")
    if let snapshot = report.snapshot?.snapshot {
      json.beginObject()
      snapshot.writeFields(to: &json)
      json.endObject()
    } else {
      json.null()
    }
    json.key("findings")
    json.beginArray()
    for finding in report.archive.findings {
      json.beginObject()
      json.field("severity", "\(finding.severity)")
      json.field("what", "\(finding)")
      json.field("offset", finding.error.offset.map { Int(clamping: $0) })
      json.endObject()
    }
    json.endArray()
    json.field("damage", report.damage)
    writeBlobs("damagedBlobs", report.damagedBlobs, to: &json)
    writeBlobs("missingBlobs", report.missingBlobs, to: &json)
    json.key("recordWarnings")
    json.beginArray()
    for (record, why) in report.repository?.recordWarnings ?? [] {
      json.string("\(record): \(why)")
    }
    json.endArray()
    json.endObject()
    json.newline()
    Console.print(&json)
  }

  private func writeBlobs(
    _ key: String, _ blobs: [SnapshotVerifier.LostBlob], to json: inout JSONWriter
  ) {
    json.key(key)
    json.beginArray()
    for blob in blobs {
      json.beginObject()
      json.field("cid", "\(blob.cid)")
      json.field("why", blob.why)
      json.field("record", blob.record)
      json.field("type", blob.mimeType)
      json.field("size", blob.size)
      json.endObject()
    }
    json.endArray()
  }
}
