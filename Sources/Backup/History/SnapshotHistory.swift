public import ATProtocol
public import Archive
public import IPLD

/// All snapshots of an archive: what each is in a few words, and where the chain of them is broken.
///
/// Manifests are read from the newest back, each naming the one before it. Where one of them is lost, the footers of older generations, which name a
/// manifest each, lead on: nothing that can be reached either way is left out, and every break is in ``breaks``. An archive without a footer has
/// nothing that names its newest manifest; all that is left of manifests is offered then, and ``isVouched`` is false.
///
/// ```swift
/// let history = try SnapshotHistory(of: reader)
/// for entry in history.entries.reversed() { print(entry.number, entry.createdAt, entry.did) }
/// ```
public struct SnapshotHistory: Sendable {
  /// One snapshot in a few words; a manifest may be long, and there may be thousands.
  public struct Entry: Equatable, Sendable {
    /// Its number, from 1 for the oldest.
    public internal(set) var number = 0
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
    /// When it was made, in RFC 3339; cut off if it is longer than that can be.
    public let createdAt: String
    /// The same as a moment; nil if it is none.
    public let moment: Moment?
    /// How many records, tree nodes and distinct blocks there are.
    public let counts: Snapshot.Counts
    /// How many blobs there are, and how many of them were there when it was made.
    public let blobs: Snapshot.BlobCounts
    /// Whether every tree node and record was in the CAR.
    public let isComplete: Bool
    /// The length of the CAR.
    public let carByteCount: UInt64
    /// The SHA-256 of the CAR.
    public let carSHA256: SHA256Digest
    /// By how many bytes the file grew for it; nil if that cannot be told.
    ///
    /// It is counted from the generation that first named the manifest before this one. What checkpoints wrote meanwhile is in it. It cannot be told
    /// of snapshots that were copied together, or whose manifests were written again because others were forgotten.
    public internal(set) var bytesAdded: UInt64?
    /// Whether a footer leads to it, and did so when its manifest was made.
    public internal(set) var isVouched = true
  }

  /// Where the history cannot be followed.
  public struct Break: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Reason: Equatable, Sendable {
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
    public let reason: Reason
    /// The oldest manifest that could be read before it; nil if it is the newest that cannot.
    public let after: CID?

    /// What a person reads.
    public var description: String {
      let newest = after == nil ? "newest " : ""
      let place = after.map { ", which \($0) follows," } ?? ""
      return switch reason {
      case .damagedManifest(let cid, let error):
        "the \(newest)manifest \(cid)\(place) is lost: \(error)"
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
  public static let maximumCount = 1 << 17

  /// The snapshots, the oldest first.
  public private(set) var entries: [Entry] = []
  /// Where the history could not be followed, the newest first.
  public private(set) var breaks: [Break] = []
  /// Whether a footer names the newest snapshot, so that each is named by one that is named; otherwise they are what was found in the file.
  public let isVouched: Bool

  /// The snapshot that was made last; nil if there is none, or it is lost.
  public var newest: Entry? { entries.last }

  /// Reads the history of an archive.
  ///
  /// - Throws: nothing about what is wrong with the archive: that is in ``breaks``.
  public init(of reader: ArchiveReader) throws {
    try self.init(of: reader, limit: Self.maximumCount)
  }

  /// Reads no more than so many snapshots of the history of an archive.
  package init(of reader: ArchiveReader, limit: Int) throws {
    isVouched = reader.generation.number > 0
    var generations = GrowthLog()
    if isVouched {
      generations = GrowthLog(of: reader, limit: limit)
      if let error = generations.failure {
        breaks.append(Break(reason: .damagedFooter(error), after: nil))
      }
      try follow(reader, generations, limit)
    } else {
      try gather(reader, limit)
    }
    entries.reverse()
    for index in entries.indices {
      entries[index].number = index + 1
      entries[index].bytesAdded = generations.bytesAdded(
        by: entries[index].cid, after: index > 0 ? entries[index - 1].cid : nil)
    }
  }

  /// Walks the chain of manifests, and where it is broken goes on with the next that a footer names.
  private mutating func follow(_ reader: ArchiveReader, _ generations: GrowthLog, _ limit: Int)
    throws
  {
    var seen: Set<CID> = []
    for start in generations.heads where !seen.contains(start.cid) {
      var next: CID? = start.cid
      let breakCount = breaks.count
      while let cid = next, seen.insert(cid).inserted {
        guard entries.count < limit else {
          note(.tooMany)
          return
        }
        next = nil
        do {
          let snapshot = try ArchivedSnapshot.manifest(cid, in: reader)
          entries.append(Entry(cid, snapshot))
          next = snapshot.previous
          if entries.count % 128 == 0 { reader.releasePages() }
        } catch let error as ArchiveError {
          note(.damagedManifest(cid, error))
        } catch let error as SnapshotError {
          note(.unusableManifest(cid, error))
        }
      }
      // What older footers name and an unbroken chain passes by has been forgotten on purpose.
      if breaks.count == breakCount { return }
    }
  }

  private mutating func note(_ reason: Break.Reason) {
    breaks.append(Break(reason: reason, after: entries.last?.cid))
  }

  /// Takes everything that is a manifest, in the order of the file.
  private mutating func gather(_ reader: ArchiveReader, _ limit: Int) throws {
    for ordinal in reader.ordinals.reversed() {
      guard entries.count < limit else {
        note(.tooMany)
        return
      }
      do {
        let cid = try reader.section(at: ordinal).cid
        guard let snapshot = try ArchivedSnapshot.possibleManifest(cid, in: reader) else {
          continue
        }
        entries.append(Entry(cid, snapshot))
      } catch is ArchiveError {
        // Lost with the damage: whoever opened the file was told that it has no footer.
        continue
      }
    }
  }
}

extension SnapshotHistory.Entry {
  /// What is kept of a manifest.
  init(_ cid: CID, _ snapshot: Snapshot) {
    self.cid = cid
    did = snapshot.did
    handle = snapshot.handle
    rev = snapshot.rev
    commit = snapshot.commit
    createdAt = String(snapshot.createdAt.prefix(Moment.maximumLength))
    moment = Moment(snapshot.createdAt)
    counts = snapshot.counts
    blobs = snapshot.blobs
    isComplete = snapshot.isComplete
    carByteCount = snapshot.car.byteCount
    carSHA256 = snapshot.car.sha256
    isVouched = !snapshot.isUnvouched
  }
}
