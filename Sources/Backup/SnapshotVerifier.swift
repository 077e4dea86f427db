public import ATProtocol
public import Archive
public import IPLD

/// Verifies an archive and the snapshot in it: every byte of the file, the CAR bit for bit, the whole tree, every blob.
public struct SnapshotVerifier {
  /// How much is looked at.
  public typealias Depth = ArchiveVerifier.Depth

  /// A blob that is referred to and cannot be given back.
  public struct LostBlob: Sendable {
    /// The blob.
    public let cid: CID
    /// The record that refers to it first; nil if that is not known.
    public let record: String?
    /// Why.
    public let why: String
    /// Its media type and length, as the record says.
    public let mimeType: String?
    /// The length, as the record says.
    public let size: Int?
  }

  /// What was found.
  public struct Report: Sendable {
    /// What was found out about the file.
    public let archive: ArchiveVerification
    /// The snapshot, if its manifest can be read.
    public internal(set) var snapshot: ArchivedSnapshot?
    /// What was found out about the repository; nil if only the file was looked at.
    public internal(set) var repository: RepositoryInspection?
    /// What is damaged or contradicts itself beyond what ``archive`` says.
    public internal(set) var damage: [String] = []
    /// Blobs that are referred to and not there.
    public internal(set) var missingBlobs: [LostBlob] = []
    /// Blobs that are there and damaged.
    public internal(set) var damagedBlobs: [LostBlob] = []

    /// What it comes to.
    public var verdict: Verdict {
      if archive.worst == .damaged || !damage.isEmpty || !damagedBlobs.isEmpty { return .damaged }
      if archive.worst == .interruptedTail || !missingBlobs.isEmpty { return .incomplete }
      if let snapshot = snapshot?.snapshot {
        if !snapshot.isComplete || snapshot.blobs.missing > 0 { return .incomplete }
      }
      return .intact
    }
  }

  /// What verifying comes to, the worst deciding.
  public enum Verdict: String, Sendable {
    /// Everything is there and as it was.
    case intact
    /// Something that is referred to is missing; what is there is as it was.
    case incomplete
    /// Something is not what was written.
    case damaged
  }

  private let observer: Progress.Observer

  /// A verifier.
  public init(observer: @escaping Progress.Observer = { _ in }) { self.observer = observer }

  /// Verifies what `reader` reads.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - depth: `quick` compares stored bytes with their checksums and believes the manifest: it neither decompresses nor hashes nor walks.
  /// - Throws: ``BackupError`` if there is no room for a temporary file; what is wrong with the archive is in the report.
  public func verify(_ reader: ArchiveReader, _ depth: Depth) throws -> Report {
    let archive = try ArchiveVerifier(reader).verify(depth) { done, total in
      observer(Progress(stage: "verifying", done: done, total: total))
    }
    var report = Report(archive: archive)
    do {
      report.snapshot = try ArchivedSnapshot.newest(in: reader)
    } catch let error as BackupError {
      throw error
    } catch {
      report.damage.append("\(error)")
      return report
    }
    if depth == .full, let snapshot = report.snapshot { try check(snapshot, &report) }
    return report
  }

  private func check(_ archived: ArchivedSnapshot, _ report: inout Report) throws {
    let restored = try RestoredRepository(archived, observer: observer)
    if let flaw = restored.flaw {
      report.damage.append("the CAR cannot be given back bit for bit: \(flaw)")
    }
    let inspection: RepositoryInspection
    do {
      inspection = try restored.withBytes { bytes throws(CARError) in
        try RepositoryInspector.inspect(bytes, verifying: !restored.isExact)
      }
    } catch {
      report.damage.append("\(error)")
      return
    }
    report.repository = inspection
    let snapshot = archived.snapshot
    if let error = inspection.commitError { report.damage.append("\(error)") }
    report.damage += inspection.treeProblems.prefix(100).map { "the tree of records: \($0)" }
    if restored.isExact {
      if inspection.header.roots.first != snapshot.commit || inspection.commit?.did != snapshot.did
        || inspection.commit?.rev != snapshot.rev
      {
        report.damage.append("the manifest describes another commit than the CAR's")
      }
      if inspection.recordCount != snapshot.counts.records
        || inspection.isComplete != snapshot.isComplete
        || inspection.blobs.entries.count != snapshot.blobs.referenced
      {
        report.damage.append("the manifest's figures are not those of the repository")
      }
    } else {
      report.damage += inspection.missingRecords.prefix(100).map { "the record \($0) is lost" }
      report.damage += inspection.missingNodes.prefix(100).map {
        "the tree node \($0) is lost, and all records below it"
      }
    }
    try checkBlobs(archived, inspection, &report)
  }

  private func checkBlobs(
    _ archived: ArchivedSnapshot, _ inspection: RepositoryInspection, _ report: inout Report
  ) throws {
    var reasons: [CID: BlobLedger.Reason] = [:]
    let damaged = Set(report.archive.damagedSections)
    do {
      for entry in try archived.missingBlobs() { reasons[entry.cid] = entry.reason }
      for extra in try archived.extras() {
        switch damaged.contains(extra) ? .damaged("its bytes") : archived.state(of: extra) {
        case .held: break
        case .missing: report.damage.append("the extra blob \(extra) is lost")
        case .damaged(let why): report.damage.append("the extra blob \(extra) is damaged: \(why)")
        }
      }
    } catch {
      report.damage.append("\(error)")
    }
    for document in [archived.snapshot.didDocument, archived.snapshot.plcLog] {
      if let document, archived.state(of: document) == .missing {
        report.damage.append("the document \(document) is lost")
      }
    }
    var heldCount = 0
    for entry in inspection.blobs.entries {
      func lost(_ why: String) -> LostBlob {
        LostBlob(
          cid: entry.cid, record: entry.firstRecord, why: why, mimeType: entry.mimeType,
          size: entry.size)
      }
      switch damaged.contains(entry.cid)
        ? .damaged("its bytes do not hash to its CID")
        : archived.state(of: entry.cid)
      {
      case .held: heldCount += 1
      case .missing:
        report.missingBlobs.append(lost((reasons[entry.cid] ?? .notProvided).sentence))
      case .damaged(let why):
        heldCount += 1
        report.damagedBlobs.append(lost(why))
      }
    }
    if inspection.isComplete, heldCount != archived.snapshot.blobs.held,
      report.damagedBlobs.isEmpty
    {
      report.damage.append(
        "the manifest counts \(archived.snapshot.blobs.held) blobs, and \(heldCount) are here")
    }
  }
}
