package import ATProtocol
package import Archive
package import IPLD
public import Snapshots

/// The result of verifying.
extension SnapshotVerifier {
  /// The worst of what was found, in a word.
  public enum Verdict: String, CaseIterable, Sendable {
    /// Everything is present and unchanged.
    case intact
    /// Something that is referred to is missing; everything present is unchanged.
    case incomplete
    /// Something differs from what was written.
    case damaged
  }

  /// A blob that is referred to, or was listed by a server, and cannot be read: the record
  /// that refers to it first, or nil if none does or that is not known; why; its media type and
  /// length, as a record says; that its loss is accepted, if it is.
  package typealias LostBlob = (
    cid: CID, record: String?, why: String, mimeType: String?, size: Int?,
    accepted: BlobLedger.Acceptance?
  )

  /// What was found out about one snapshot.
  public struct SnapshotReport: Sendable {
    /// The snapshot.
    package let entry: SnapshotHistory.Entry
    /// Whether the verdict on the whole counts what it lacks.
    package let isJudged: Bool
    /// Whether the last footer covers it.
    ///
    /// A snapshot that an unfinished write has left may lack blocks without any damage: they had
    /// not reached the medium.
    package let isCommitted: Bool
    /// Whether more of it was examined than its manifest.
    package internal(set) var isExamined = false
    /// Whether the digest of its CAR was compared with the manifest's.
    package internal(set) var isCARDigested = false
    /// What is damaged or contradicts itself.
    public internal(set) var damage: [String] = []
    /// Blobs that are referred to and not there, except for those that a newer snapshot in the
    /// report lacks too.
    package internal(set) var missingBlobs: [LostBlob] = []
    /// The blobs in figures, without their bytes: what is there now, as far as everything is
    /// examined, otherwise what the manifest says.
    public internal(set) var blobs = BlobLedger.Counts()
    /// How many records cannot be read.
    package internal(set) var unreadable = UnreadableRecords()
    /// Blobs that are there and damaged, except for those that a newer snapshot in the report has
    /// too.
    package internal(set) var damagedBlobs: [LostBlob] = []
    /// How many blobs are there and damaged.
    package internal(set) var damagedBlobCount = 0
    /// What is proven; nil if not requested, or if not everything was checked.
    package internal(set) var levels: ProofLevels?

    /// What is left of its repository, if that is damaged: how many records, and how many intact
    /// blobs they refer to.
    package internal(set) var remains: Snapshot.Remains?

    /// How many of the blobs that records refer to can be read.
    package var heldBlobCount: Int {
      max(0, entry.blobs.referenced - blobs.missing - damagedBlobCount)
    }

    /// The result; nil if only its manifest was examined, which says that nothing is missing.
    public var verdict: Verdict? {
      if !damage.isEmpty || damagedBlobCount > 0 { return isCommitted ? .damaged : .incomplete }
      let isWhole = entry.isComplete && blobs.isSettled && !unreadable.mayHideBlobs
      guard isWhole else { return .incomplete }
      return isExamined ? .intact : nil
    }
  }

  /// What was found.
  public struct Report: Sendable {
    /// What was found out about the file.
    package let archive: ArchiveVerification
    /// What was found out about each snapshot, the newest first; those whose manifests are lost are
    /// in ``fileDamage``.
    public internal(set) var snapshots: [SnapshotReport] = []
    /// What is damaged beyond what ``archive`` says and what is damaged of a snapshot.
    package internal(set) var fileDamage: [String] = []
    /// Whether there are more snapshots than were examined, because they are too many.
    package internal(set) var isPartial = false
    /// The first of the records that break the data model, with why; their blocks are kept anyway.
    package internal(set) var recordWarnings: [(record: String, why: String)] = []

    /// Everything that is damaged beyond what ``archive`` says.
    public var damage: [String] { fileDamage + snapshots.flatMap(\.damage) }
    /// Blobs that are referred to and not there, each once.
    package var missingBlobs: [LostBlob] { snapshots.flatMap(\.missingBlobs) }
    /// Blobs that are there and damaged, each once.
    package var damagedBlobs: [LostBlob] { snapshots.flatMap(\.damagedBlobs) }

    /// The snapshots of which something speaks against the account having made them, and what.
    package var doubts: [(number: Int, why: String)] {
      snapshots.flatMap { snapshot in
        (snapshot.levels?.doubts ?? []).map { (snapshot.entry.number, $0) }
      }
    }

    /// How many records and blobs the snapshots that decide hold; nil unless everything was
    /// examined and nothing is missing.
    package var safe: (records: Int, blobs: Int)? {
      let judged = snapshots.filter(\.isJudged)
      guard verdict == .intact, doubts.isEmpty, archive.isComplete, !judged.isEmpty,
        judged.allSatisfy({ $0.blobs.missing == 0 })
      else { return nil }
      return judged.map(\.entry).reduce((0, 0)) { sum, entry in
        (sum.0 + entry.counts.records, sum.1 + entry.blobs.referenced)
      }
    }

    /// The result: damage anywhere counts, and what is missing in the newest snapshot of an account
    /// or in one that was chosen.
    public var verdict: Verdict {
      let verdicts = snapshots.map(\.verdict)
      if archive.worst == .damaged || !fileDamage.isEmpty || verdicts.contains(.damaged) {
        return .damaged
      }
      let lacks = snapshots.contains { $0.isJudged && $0.verdict == .incomplete }
      return lacks || isPartial || archive.worst == .interruptedTail ? .incomplete : .intact
    }
  }
}

extension SnapshotVerifier.Report {
  /// The first thing that is damaged; nil if nothing is.
  package var firstDamage: String? {
    if !archive.isIntact { return archive.findings.first.map { "\($0)" } ?? "it is damaged" }
    return damage.first
      ?? damagedBlobs.first.map { "the blob \($0.cid) is damaged: \($0.why)" }
  }

  /// The manifests of the snapshots that are damaged.
  package var damagedSnapshots: Set<CID> {
    Set(snapshots.filter { !$0.damage.isEmpty || $0.damagedBlobCount > 0 }.map(\.entry.cid))
  }
}
