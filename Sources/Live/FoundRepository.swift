internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// A repository that is what it should be, on its way into a snapshot: one that was inspected as a
/// whole, or one that is known by how it differs from the snapshot before (``RepositoryChanges``).
struct FoundRepository: Sendable {
  /// What its manifest says of it.
  let facts: RepositoryFacts
  /// How many bytes there were to look at.
  let byteCount: Int
  /// The header of its CAR, with its length in front.
  let header: [UInt8]
  /// How a server gave it.
  let origin: Snapshot.Fetched
  /// Appends the blocks that an archive does not have; returns what the manifest says of the CAR.
  let pack: @Sendable (inout ArchiveWriter) throws -> Snapshot.CARDescription
  /// Sets the blobs that records refer to, and that a server lists, against what an archive holds.
  let reconcile: @Sendable (BlobListing?, ArchiveReader, RetrySchedule) throws -> BlobReconciliation
}

extension FoundRepository {
  /// A repository at hand as a CAR, all of which was inspected.
  init(
    _ repository: CheckedRepository, after base: ArchivedSnapshot?, origin: Snapshot.Fetched
  ) {
    facts = RepositoryFacts(repository.inspection, repository.commit)
    (header, self.origin) = (repository.header, origin)
    byteCount = Int(clamping: repository.byteCount)
    pack = { try repository.pack(into: &$0, after: base) }
    reconcile = { listing, archive, schedule in
      try BlobReconciliation(
        repository.inspection.blobs, inCAR: repository.lengthOfBlock, listing: listing,
        archive: archive, base: base, schedule: schedule)
    }
  }

  /// The repository at a commit that an interrupted backup has left in the archive: it had arrived
  /// and was checked, and only blobs were still to come.
  ///
  /// What was appended of it lies behind the manifest of the snapshot before, or makes up the
  /// beginning of an archive without any.
  ///
  /// - Parameters:
  ///   - commit: the account's newest.
  ///   - base: the snapshot that the archive has of the account.
  ///   - storage: the archive, with what lies behind its last footer.
  /// - Returns: nil if the archive does not hold all of it.
  /// - Throws: `ArchiveError`, `CARError` and ``BackupError`` if the archive cannot be read, or
  ///   there is no room.
  static func left(at commit: CID, after base: ArchivedSnapshot?, in storage: any ArchiveStorage)
    throws -> FoundRepository?
  {
    let reader = try ArchiveReader(storage.map())
    guard try reader.ordinal(of: commit) != nil else { return nil }
    // The first section that the interrupted backup may have appended.
    var start: UInt64 = 0
    var known: ArchivedSnapshot?
    if let base {
      guard let manifest = base.cid, let ordinal = try reader.ordinal(of: manifest) else {
        return nil
      }
      (start, known) = (ordinal, try ArchivedSnapshot(manifest, in: reader))
    } else {
      let header = try reader.carHeader
      guard reader.generation.head == nil, try CARHeader(header.span).roots == [commit] else {
        return nil
      }
    }
    // The sections that may be blocks of a repository, as few ranges as possible.
    var runs: [Range<UInt64>] = []
    for ordinal in start..<reader.sectionCount
    where try reader.section(at: ordinal).cid.codec == .dagCBOR {
      let first = runs.last?.upperBound == ordinal ? runs.removeLast().lowerBound : ordinal
      runs.append(first..<ordinal + 1)
    }
    do {
      let repository = try CheckedRepository(runs, at: commit, over: known, in: reader)
      var origin = Snapshot.Fetched()
      origin.since = base?.snapshot.rev
      return FoundRepository(repository, after: base, origin: origin)
    } catch is IncompleteRepository {
      return nil
    }
  }
}

/// Blocks that a server sent and that are not part of the repository: which of them are stored all
/// the same.
///
/// Some servers send blocks of earlier commits, and a CAR that came in is given back bit for bit,
/// so a few are kept. They are left out once they outweigh the repository: nothing says what they
/// are, and a server could fill any disk with them.
extension Snapshot.LeftOut {
  /// How many bytes they may have beyond what the repository has.
  private static let allowance = 1 << 20
  /// What a block counts for beside its bytes: what it takes in tables and indexes.
  private static let overhead = 64

  /// What is left out of the file of a repository; nil if it is too little.
  init?(of repository: CheckedRepository) {
    guard let file = repository.file else { return nil }
    self.init(
      of: file, using: (0..<repository.newCount).map(repository.start),
      own: (
        Int(clamping: repository.sectionCount),
        Int(clamping: repository.byteCount) - repository.header.count
      ))
  }

  /// What is left out of a CAR; nil if it is too little.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - starts: where its sections begin that are part of the repository.
  ///   - own: how many blocks and bytes the repository has; nil if it has these alone.
  init?(of file: CARFile, using starts: [Int], own: (blocks: Int, bytes: Int)? = nil) {
    let usedBytes = file.byteCount(ofSectionsAt: starts)
    let (ownBlocks, ownBytes) = own ?? (starts.count, usedBytes)
    let blocks = file.sectionCount - starts.count
    let bytes = file.sectionByteCount - usedBytes
    guard
      bytes + blocks * Self.overhead > ownBytes + ownBlocks * Self.overhead + Self.allowance
    else { return nil }
    self.init(blocks: blocks, bytes: bytes)
  }
}
