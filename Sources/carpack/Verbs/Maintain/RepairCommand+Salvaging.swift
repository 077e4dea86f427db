internal import ATProtocol
internal import Archive
internal import Copying
internal import Files
internal import Snapshots
internal import SystemPackage

/// `carpack repair -o`: a new archive of what is left.
extension RepairCommand {
  func salvage(_ file: String, to target: AtomicFile) throws {
    let output = target.path.string
    let provenance = SnapshotBuilder.Provenance(
      tool: "carpack \(Carpack.version)", createdAt: Host.now, hostSystem: Host.system,
      milliseconds: Host.milliseconds)
    let report: ArchiveCopier.SalvageReport
    do {
      let storage = try target.storage()
      Interruption.removeIfInterrupted(target.temporaryPath.string)
      let copier = ArchiveCopier(
        level: compression.level, observer: ProgressLine.observer(quiet: common.quiet))
      let reader = try ArchiveReader.opening(file, limits.limits, store)
      report = try ArchiveReader.checkingFetched([reader]) {
        try copier.salvage(reader, into: storage, by: provenance)
      }
      try target.publishArchive()
      Interruption.removeIfInterrupted(nil)
    } catch {
      target.discard()
      throw error
    }
    Console.endProgress()
    if json { printJSON(report, output) } else { printText(report, output) }
    if !report.isWhole { throw ExitStatus.incomplete }
  }

  private func printText(_ report: ArchiveCopier.SalvageReport, _ output: String) {
    for cid in report.lostSections {
      Console.say(.lost, "\(cid)")
    }
    for lost in report.lostSnapshots { Console.say(.lost, "\(lost)") }
    for snapshot in report.snapshots where !snapshot.loss.isNone {
      let name = "\(snapshot.did)\(snapshot.rev.map { " at \($0)" } ?? "")"
      let losses = Self.losses(of: snapshot)
      Console.say(.incomplete, "\(name) lost \(losses)")
      for record in snapshot.loss.records { Console.say("  \(record)") }
      for lost in snapshot.loss.blobs + snapshot.loss.documents { Console.say("  \(lost)") }
    }
    let whole = report.snapshots.count(where: \.loss.isNone)
    let size = report.generation?.committedLength ?? 0
    common.say(
      "\(output): \(Quantity.bytes(size)), \(Quantity.grouped(whole)) of \(Quantity.count(report.snapshots.count, "snapshot")) whole, \(Quantity.count(Int(clamping: report.lostSectionCount), "section")) lost"
    )
  }

  private static func losses(of snapshot: ArchiveCopier.SalvagedSnapshot) -> String {
    let blocks = Quantity.count(Int(clamping: snapshot.loss.blockCount), "block")
    let records = Quantity.count(snapshot.loss.recordCount, "record")
    var losses = ["\(blocks) (\(records))", Quantity.count(snapshot.loss.blobCount, "blob")]
    if !snapshot.loss.documents.isEmpty {
      losses.append(Quantity.count(snapshot.loss.documents.count, "document"))
    }
    if !snapshot.loss.isExact, snapshot.loss.blockCount == 0 {
      losses.append("the order of its blocks")
    }
    return losses.joined(separator: ", ")
  }

  private func printJSON(_ report: ArchiveCopier.SalvageReport, _ output: String) {
    var json = JSONWriter.ofResults
    json.begin(.salvage)
    json.field("file", output)
    json.field("bytes", report.generation?.committedLength ?? 0)
    json.field("archiveHead", report.generation?.head.map { "\($0.cid)" })
    json.field("lostSections", report.lostSectionCount)
    json.field("lost", report.lostSections.map { "\($0)" })
    json.field("lostSnapshots", report.lostSnapshots)
    json.beginArray("snapshots")
    for snapshot in report.snapshots {
      json.beginObject()
      json.field("did", snapshot.did.text)
      json.field("rev", snapshot.rev?.text)
      json.field("manifest", "\(snapshot.new)")
      json.field("oldManifest", snapshot.old.map { "\($0)" })
      json.field("lostBlocks", snapshot.loss.blockCount)
      json.field("lostRecords", snapshot.loss.recordCount)
      json.field("records", snapshot.loss.records)
      json.field("lostBlobs", snapshot.loss.blobs.map { "\($0)" })
      if !snapshot.isVouched {
        json.field("vouched", false)
      }
      json.endObject()
    }
    json.endArray()
    Console.finish(&json)
  }
}
