internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots
internal import SystemPackage

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
  ///   - folder: where to put files without a name.
  /// - Returns: nil if the archive does not hold all of it.
  /// - Throws: `ArchiveError`, `CARError` and ``BackupError`` if the archive cannot be read, or
  ///   there is no room.
  static func find(
    _ commit: CID, after base: ArchivedSnapshot?, in storage: any ArchiveStorage, folder: FilePath
  ) throws -> FoundRepository? {
    let reader = try ArchiveReader(storage.map())
    guard try reader.ordinal(of: commit) != nil, let start = try start(after: base, in: reader),
      let header = try header(commit, base, reader)
    else { return nil }
    let spool = try TemporaryFile(in: folder)
    try spool.write(header.span)
    try reader.copySections(try runs(from: start, in: reader)) { try spool.write($0) }
    let source = try CommittedBlocks.Source(spool.map())
    var origin = Snapshot.Fetched()
    let car: MappedFile
    do {
      car = try CommittedBlocks(source, after: base).writeInOrderOfSources(folder: folder)
    } catch is CommittedBlocks.Incomplete {
      return nil
    }
    origin.since = base?.snapshot.rev
    // What is read from an archive is hashed on the way.
    let repository = try CheckedRepository(
      car, archive: reader, isHashed: true, observer: { _ in })
    return FoundRepository(.whole(repository), origin: origin)
  }

  /// The first section that the interrupted backup may have appended; nil if nothing says which.
  private static func start(after base: ArchivedSnapshot?, in reader: ArchiveReader) throws
    -> UInt64?
  {
    guard let base else { return reader.generation.head == nil ? 0 : nil }
    return try base.cid.flatMap { (manifest) throws in try reader.ordinal(of: manifest) }
  }

  /// The header of the CAR; nil if the archive begins with another repository.
  private static func header(
    _ commit: CID, _ base: ArchivedSnapshot?, _ reader: ArchiveReader
  ) throws -> [UInt8]? {
    guard base == nil else { return CARHeader(roots: [commit]).bytes }
    let header = try reader.carHeader
    return try CARHeader(header.span).roots == [commit] ? header : nil
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
