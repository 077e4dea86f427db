public import ATProtocol
package import Archive
package import Files
public import IPLD

/// All snapshots of an archive: a summary of each, and where the chain of manifests is broken.
///
/// Manifests are read from the newest back, each naming the one before it. Where one of them is
/// lost, the footers of older generations, which name a manifest each, lead on: nothing that can be
/// reached either way is left out, and every break is in ``breaks``.
///
/// Snapshots that no footer leads to are listed, too, and marked: what an unfinished write has left
/// after the last footer, and, where the chain is broken, every manifest of the file. They are
/// offered; none of them is the newest unless it is asked for. What a sound chain passes by has
/// been forgotten on purpose, and a manifest made again is listed once.
///
/// ```swift
/// let history = try SnapshotHistory(of: reader)
/// for entry in history.entries.reversed() { print(entry.number, entry.createdAt, entry.did) }
/// ```
public struct SnapshotHistory: Sendable {
  /// The summary of a snapshot; a manifest may be long, and there may be thousands.
  public struct Entry: Equatable, Sendable {
    /// Its number, from 1 for the oldest.
    public internal(set) var number = 0
    /// Whether a footer leads to it; otherwise it was found in the file, and nothing says that it
    /// was ever committed.
    public internal(set) var isVouched = true
    /// The CID of its manifest.
    public let cid: CID
    /// The account.
    public let did: DID
    /// The account's handle, as it was known.
    public let handle: Handle?
    /// The revision; nil for a commit of version 2.
    public let rev: TID?
    /// The signed commit.
    public let commit: CID
    /// The manifest before it; nil if it is the first.
    package let previous: CID?
    /// When it was made, in RFC 3339; truncated if it is longer than such a time can be.
    public let createdAt: String
    /// ``createdAt`` as a moment; nil if it is not one.
    package let moment: Moment?
    /// How many records, tree nodes and distinct blocks there are.
    public let counts: Snapshot.Counts
    /// How many blobs there are, and how many of them were there when it was made.
    public let blobs: Snapshot.BlobCounts
    /// How many records could not be read when it was made.
    package let unreadable: UnreadableRecords
    /// Whether every tree node and record was in the CAR.
    public let isComplete: Bool
    /// What damage to an archive has left of it; nil if nothing is known to be lost.
    package let remains: Snapshot.Remains?
    /// What spoke against it when it was made, and what of that was accepted.
    package let standing: Standing
    /// The length of the CAR.
    package let carByteCount: UInt64
    /// The SHA-256 of the CAR; nil if the snapshot was not received as a CAR.
    package let carSHA256: SHA256Digest?
    /// By how many bytes the file grew for it; nil if unknown.
    ///
    /// It is counted from the generation that first named the manifest before this one. What
    /// checkpoints wrote meanwhile is in it. It cannot be told of snapshots that were copied
    /// together, or whose manifests were written again because others were forgotten.
    package internal(set) var bytesAdded: UInt64?
  }

  /// Where the history cannot be followed.
  public struct Break: KnownFault, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    package enum Reason: Equatable, Sendable {
      /// This manifest is damaged.
      case damagedManifest(CID, ArchiveError)
      /// This manifest is not there or cannot be used.
      case unusableManifest(CID, SnapshotError)
      /// A footer is damaged, so that what earlier ones say is not known.
      case damagedFooter(ArchiveError)
      /// There are more snapshots than are listed.
      case tooMany
    }

    /// What is wrong.
    package let reason: Reason
    /// The oldest manifest that could be read before it; nil if it is the newest that cannot.
    package let after: CID?

    /// What came before it is lost, or not listed.
    public var faultKind: FaultKind { reason == .tooMany ? .limit : .damage }

    /// Whether it is a snapshot that is lost.
    package var isOfManifest: Bool {
      switch reason {
      case .damagedManifest, .unusableManifest: true
      case .damagedFooter, .tooMany: false
      }
    }

    /// The message for people.
    public var description: String {
      let newest = after == nil ? "newest " : ""
      let place = after.map { ", which \($0) follows," } ?? ""
      return switch reason {
      case .damagedManifest(let cid, let error):
        after.map { "the snapshot that \($0) follows is lost with its manifest \(cid): \(error)" }
          ?? "the newest manifest \(cid) is lost: \(error)"
      case .unusableManifest(let cid, let error):
        "the \(newest)manifest \(cid)\(place) cannot be used: \(error)"
      case .damagedFooter(let error):
        "the chain of generations is broken, so what each snapshot added is not known: \(error)"
      case .tooMany: "only the newest \(SnapshotHistory.maximumCount) snapshots are listed"
      }
    }
  }

  /// How many snapshots are listed: one an hour for fifteen years.
  ///
  /// Each takes some three hundred bytes of memory, and a small file can hold very many.
  package static let maximumCount = 1 << 17

  /// The reader for the snapshots: the given one, or, if that lacks a manifest, one that a survey
  /// of the whole file made.
  package private(set) var reader: ArchiveReader
  /// The snapshots, the oldest first.
  public internal(set) var entries: [Entry] = []
  /// Where the history could not be followed, the newest first.
  public private(set) var breaks: [Break] = []
  /// The newest snapshot that a footer leads to; where none does, the newest that was found.
  ///
  /// Nil if there is none, or it is lost.
  public var newest: Entry? { entries.last(where: \.isVouched) ?? entries.last }

  /// Reads the history of an archive, no more than this many snapshots of it.
  ///
  /// - Throws: nothing about what is wrong with the archive: that is in ``breaks``.
  package init(of reader: ArchiveReader, limit: Int = Self.maximumCount) throws {
    self.reader = reader
    var generations = GrowthLog()
    var walk = ManifestWalk(reader, limit)
    var sound: UInt64?
    let moved = try reader.movedHeads
    if reader.generation.number > 0 || !moved.isEmpty {
      generations = GrowthLog(of: reader, limit: limit)
      // What lies before the last footer of a repaired file need not count.
      if let error = generations.failure, !reader.generation.features.isRepaired {
        breaks.append(Break(reason: .damagedFooter(error), after: nil))
      }
      let heads = moved + generations.heads
      sound = try walk.follow(heads)
      if walk.breaks.contains(where: \.isOfManifest) {
        // What is not where the index says may be elsewhere.
        self.reader = try reader.surveyed()
        walk = ManifestWalk(self.reader, limit)
        sound = try walk.follow(heads)
      }
    }
    entries = walk.entries.reversed()
    let candidates = try self.reader.manifestCandidates(behind: sound ?? 0)
    let found = try walk.find(candidates, sound != nil)
    breaks += walk.breaks
    place(found)
    for index in entries.indices {
      entries[index].bytesAdded = generations.bytesAdded(
        by: entries[index].cid, after: index > 0 ? entries[index - 1].cid : nil)
    }
  }
}

extension SnapshotHistory.Entry {
  /// What is kept of a manifest.
  package init(_ cid: CID, _ snapshot: Snapshot) {
    (self.cid, did, handle) = (cid, snapshot.did, snapshot.handle)
    (rev, commit, previous) = (snapshot.rev, snapshot.commit, snapshot.previous)
    createdAt = String(snapshot.createdAt.prefix(Moment.maximumLength))
    moment = Moment(snapshot.createdAt)
    (counts, blobs, isComplete) = (snapshot.counts, snapshot.blobs, snapshot.isComplete)
    (unreadable, standing) = (snapshot.unreadable, snapshot.standing)
    remains = snapshot.remains
    (carByteCount, carSHA256) = (snapshot.car.byteCount, snapshot.car.sha256)
    isVouched = !snapshot.isUnvouched
  }
}

/// Which manifest was the newest at which length of the file, as the footers tell.
struct GrowthLog {
  /// The newest manifests of all generations, the newest first, each once; and the file's length
  /// when a footer first named it.
  private(set) var heads: [(cid: CID, offset: UInt64)] = []
  /// Why older generations are not known; nil if all are.
  private(set) var failure: ArchiveError?
  /// Whether older manifests were left out.
  private var isCut = false
  private var positions: [CID: Int] = [:]

  /// An empty log.
  init() {}

  /// Reads the footers, as far as they name no more than this many manifests.
  init(of reader: ArchiveReader, limit: Int) {
    do throws(ArchiveError) {
      try reader.forEachGeneration { generation in
        // Before the first manifest no footer names one.
        guard let cid = generation.head?.cid else { return false }
        if heads.last?.cid == cid {
          heads[heads.count - 1].offset = generation.committedLength
        } else if positions[cid] == nil {
          isCut = heads.count > limit
          guard !isCut else { return false }
          positions[cid] = heads.count
          heads.append((cid, generation.committedLength))
        }
        return true
      }
    } catch {
      failure = error
    }
  }

  /// By how many bytes the file grew for this manifest; nil if that is not known.
  ///
  /// - Parameter previous: the manifest before it. If the footers name another in between, or none,
  ///   several were written at once, as by compacting, or the manifest was written again without
  ///   its content, as by pruning.
  func bytesAdded(by manifest: CID, after previous: CID?) -> UInt64? {
    guard let position = positions[manifest] else { return nil }
    let length = heads[position].offset
    guard position + 1 < heads.count else {
      // The first of all generations that there were, or only of those that are known.
      return previous == nil && failure == nil && !isCut ? length : nil
    }
    // A generation that is not known may have named the oldest manifest before those that are.
    guard heads[position + 1].cid == previous, failure == nil || position + 2 < heads.count else {
      return nil
    }
    return length - heads[position + 1].offset
  }
}
