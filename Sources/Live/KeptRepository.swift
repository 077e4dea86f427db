internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// The repository that an interrupted backup has left in the archive: it had arrived and was
/// checked, and only blobs were still to come.
///
/// What was appended of it lies behind the manifest of the snapshot before, or makes up the
/// beginning of an archive without any.
enum KeptRepository {
  /// Looks for the repository at a commit.
  ///
  /// - Parameters:
  ///   - commit: the account's newest.
  ///   - base: the snapshot that the archive has of the account.
  ///   - storage: the archive, with what lies behind its last footer.
  /// - Returns: nil if the archive does not hold all of it.
  /// - Throws: `ArchiveError`, `CARError` and ``BackupError`` if the archive cannot be read, or
  ///   there is no room.
  static func find(
    _ commit: CID, after base: ArchivedSnapshot?, in storage: any ArchiveStorage
  ) throws -> FoundRepository? {
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
    var origin = Snapshot.Fetched()
    origin.since = base?.snapshot.rev
    do {
      let repository = try CheckedRepository(
        runs(from: start, in: reader), at: commit, over: known, in: reader)
      return FoundRepository(.whole(repository), origin: origin)
    } catch is IncompleteRepository {
      return nil
    }
  }

  /// The sections from one on that may be blocks of a repository, as few ranges as possible.
  private static func runs(from start: UInt64, in reader: ArchiveReader) throws -> [Range<UInt64>] {
    var runs: [Range<UInt64>] = []
    for ordinal in start..<reader.sectionCount
    where try reader.section(at: ordinal).cid.codec == .dagCBOR {
      if let last = runs.last, last.upperBound == ordinal {
        runs[runs.count - 1] = last.lowerBound..<ordinal + 1
      } else {
        runs.append(ordinal..<ordinal + 1)
      }
    }
    return runs
  }
}
