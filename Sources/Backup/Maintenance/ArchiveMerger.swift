public import Archive
internal import IPLD
public import SystemPackage

/// Makes one archive of several: all of their snapshots, each section once.
///
/// The snapshots are in the order of the times at which they were made, and of the archives where that is the same. One that says the same in two
/// archives, but for what is before it in the file and where its blocks lie, is kept once. A blob that one archive lacks and another holds is there.
public struct ArchiveMerger {
  /// What came of it.
  public struct Report: Sendable {
    /// How many snapshots there are.
    public let snapshotCount: Int
    /// How many there were in more than one archive.
    public let sharedCount: Int
    /// How many accounts there are.
    public let accountCount: Int
    /// How many bytes are committed in the archives, together.
    public let sourceSize: UInt64
    /// What is in the new file.
    public let generation: Generation
  }

  private let level: Int
  private let observer: Progress.Observer
  private let storage: (NewArchiveFile) throws -> any ArchiveStorage

  /// A merger.
  public init(level: Int = 3, observer: @escaping Progress.Observer = { _ in }) {
    self.init(level: level, observer: observer) { try $0.storage() }
  }

  /// A merger that writes to a storage of another kind.
  package init(
    level: Int = 3, observer: @escaping Progress.Observer = { _ in },
    storage: @escaping (NewArchiveFile) throws -> any ArchiveStorage
  ) {
    self.level = level
    self.observer = observer
    self.storage = storage
  }

  /// Merges archives into a new one, and verifies that before it gets its name.
  ///
  /// - Parameters:
  ///   - archives: the archives, which are only read.
  ///   - target: the new one.
  ///   - willWrite: is told the name of the temporary file once it is there.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if one of them is damaged; ``BackupError/copyFailed(_:)`` if the new one is;
  ///   `ArchiveError` if it cannot be written.
  public func merge(
    _ archives: [IntactArchive], to target: NewArchiveFile,
    willWrite: (FilePath) -> Void = { _ in }
  ) throws -> Report {
    let (picks, sharedCount) = try Self.order(archives)
    let copy = ArchiveCopy(picks, of: archives, level: level, observer: observer)
    let new = try storage(target)
    do {
      willWrite(target.temporaryPath)
      let (generation, _) = try copy.write(to: new)
      try copy.verify(new)
      try target.publish()
      return Report(
        snapshotCount: picks.count, sharedCount: sharedCount,
        accountCount: Set(archives.flatMap { $0.history.entries.map(\.did) }).count,
        sourceSize: archives.reduce(0) { $0 + $1.reader.generation.committedLength },
        generation: generation)
    } catch {
      target.discard()
      throw error
    }
  }

  /// All snapshots in their order, each once; and how many were found again.
  static func order(_ archives: [IntactArchive]) throws -> ([ArchiveCopy.Pick], shared: Int) {
    var seen: Set<CID> = []
    var sharedCount = 0
    var found: [(pick: ArchiveCopy.Pick, moment: Moment?)] = []
    for (number, archive) in archives.enumerated() {
      // One whose time cannot be read stays behind the one that it followed.
      var latest: Moment?
      for entry in archive.history.entries {
        let content = try archive.reading {
          try ManifestMap(ArchivedSnapshot(entry.cid, in: archive.reader)).content
        }
        latest = entry.moment ?? latest
        let bytes = try DAGCBOREncoder.encode(.map(content))
        guard seen.insert(CID(codec: .dagCBOR, hashing: bytes.span)).inserted else {
          sharedCount += 1
          continue
        }
        found.append((ArchiveCopy.Pick(source: number, manifest: entry.cid), latest))
      }
    }
    let order = found.indices.sorted { left, right in
      switch (found[left].moment, found[right].moment) {
      case (let first?, let second?):
        if first.begins(before: second) { return true }
        return !second.begins(before: first) && left < right
      case (nil, nil): return left < right
      // Nothing before it has a time: it is as old as can be.
      case (let first, _): return first == nil
      }
    }
    return (order.map { found[$0].pick }, sharedCount)
  }
}
