public import ATProtocol
public import Archive
public import IPLD

/// Makes a new archive of what is left of a damaged one.
///
/// Every section that still hashes to its CID goes into it, in the order of the file, whether a snapshot needs it or not. Then come the
/// snapshots. One that lost nothing is what it was, its CAR bit for bit. Of one that did, the CAR is what is left of it; its manifest says
/// so (`complete`), and that blobs which are gone were lost.
///
/// 1. The damaged archive is only read.
/// 2. Nothing is in the new one that has not been hashed.
public struct ArchiveSalvager {
  /// What became of a snapshot.
  public struct Outcome: Sendable {
    /// The account.
    public let did: DID
    /// The revision.
    public let rev: TID?
    /// Its manifest in the damaged archive; nil if that was lost.
    public let old: CID?
    /// Its manifest in the new one.
    public let new: CID
    /// How many sections of its CAR are lost.
    public let lostBlockCount: UInt64
    /// The records that are lost, by their paths; the first `RepositoryInspection.maximumListed`.
    public let lostRecords: [String]
    /// How many records are lost.
    public let lostRecordCount: Int
    /// The blobs that were held and are lost.
    public let lostBlobs: [CID]

    /// Whether it lost nothing.
    public var isWhole: Bool { lostBlockCount == 0 && lostBlobs.isEmpty }
  }

  /// What came of it.
  public struct Report: Sendable {
    /// How many sections could not be saved, as far as that is known.
    public internal(set) var lostSectionCount: UInt64 = 0
    /// The CIDs of those of them that are known, the first thousand.
    public internal(set) var lostSections: [CID] = []
    /// Why snapshots are lost altogether.
    public internal(set) var lostSnapshots: [String] = []
    /// The snapshots that were saved, the oldest first.
    public internal(set) var snapshots: [Outcome] = []
    /// What is in the new archive.
    public internal(set) var generation: Generation?

    /// Whether nothing was lost.
    public var isWhole: Bool {
      lostSectionCount == 0 && lostSnapshots.isEmpty && snapshots.allSatisfy(\.isWhole)
    }
  }

  let reader: ArchiveReader
  let history: SnapshotHistory
  let options: RepositoryPacker.Options
  let observer: Progress.Observer
  var report = Report()
  /// For each section its number in the new archive; `UInt64.max` if it is not there.
  var numbers: [UInt64]
  var previous: CID?
  var bases: [DID: OrderBasis] = [:]

  private init(
    _ reader: ArchiveReader, _ options: RepositoryPacker.Options,
    _ observer: @escaping Progress.Observer
  ) throws {
    self.reader = reader
    self.options = options
    self.observer = observer
    history = try SnapshotHistory(of: reader)
    numbers = [UInt64](repeating: .max, count: Int(reader.sectionCount))
  }

  /// Salvages an archive.
  ///
  /// - Parameters:
  ///   - reader: the damaged archive.
  ///   - storage: where the new one is written; whatever is there is thrown away.
  ///   - options: how, and by whom.
  ///   - observer: is told how far it has come.
  /// - Throws: ``SnapshotError/noSnapshot`` if not even one commit is left; `ArchiveError` if the new archive cannot be written.
  public static func salvage(
    _ reader: ArchiveReader, into storage: any ArchiveStorage, options: RepositoryPacker.Options,
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Report {
    var salvager = try ArchiveSalvager(reader, options, observer)
    try salvager.run(into: storage)
    return salvager.report
  }

  private mutating func run(into storage: any ArchiveStorage) throws {
    report.lostSnapshots = history.breaks.map { "\($0)" }
    var archived: [ArchivedSnapshot] = []
    for entry in history.entries { archived.append(try ArchivedSnapshot(entry.cid, in: reader)) }
    if archived.isEmpty {
      var found = try ArchivedSnapshot.salvaged(from: reader)
      found.describe(options)
      archived = [found]
      report.lostSnapshots.append("the newest manifest is lost, and with it when it was made")
    }
    try storage.lock()
    try storage.truncate(to: 0)
    var archiveOptions = ArchiveOptions(level: options.level)
    archiveOptions.optionalFeatures = reader.generation.features.optional
    var writer = try ArchiveWriter.open(
      storage, carHeader: archived[0].snapshot.car.header, options: archiveOptions)
    try copySections(leaving: Self.bookkeeping(of: archived), into: &writer)
    for snapshot in archived { try rewrite(snapshot, into: &writer) }
    report.generation = try writer.commit(manifest: previous)
  }

  /// What is made anew and therefore not copied: the manifests, and the pages of their orders.
  private static func bookkeeping(of snapshots: [ArchivedSnapshot]) -> Set<CID> {
    var cids: Set<CID> = []
    for snapshot in snapshots {
      if let cid = snapshot.cid { cids.insert(cid) }
      if case .pages(let pages) = snapshot.snapshot.car.order { cids.formUnion(pages) }
    }
    return cids
  }

  // MARK: Sections

  /// Copies every section that holds, but for some.
  private mutating func copySections(
    leaving bookkeeping: Set<CID>, into writer: inout ArchiveWriter
  ) throws {
    let end = reader.sectionCount
    var next: UInt64 = 0
    while next < end {
      next = try copySections(next..<end, leaving: bookkeeping, into: &writer)
      observer(Progress(stage: "salvaging", done: next, total: end))
    }
  }

  /// Copies sections up to the first that is lost, which is noted; answers where to go on.
  private mutating func copySections(
    _ ordinals: Range<UInt64>, leaving bookkeeping: Set<CID>, into writer: inout ArchiveWriter
  ) throws -> UInt64 {
    var current: Section?
    var next = ordinals.lowerBound
    do {
      try reader.forEachSection(in: ordinals) { section in
        current = section
        guard !bookkeeping.contains(section.cid) else {
          next = section.ordinal + 1
          return .skip
        }
        if let there = try writer.begin(section.cid, length: section.bodyLength) {
          note(section.ordinal, there)
          next = section.ordinal + 1
          return .skip
        }
        return .read
      } chunk: { bytes in
        try writer.take(bytes)
      } end: { section in
        note(section.ordinal, try writer.finish())
        next = section.ordinal + 1
      }
    } catch let error as ArchiveError where error.reason.isDamage {
      try writer.cancel()
      report.lostSectionCount += 1
      if let current, current.ordinal == next, report.lostSections.count < 1000 {
        report.lostSections.append(current.cid)
      }
      return next + 1
    }
    return ordinals.upperBound
  }

  private mutating func note(_ ordinal: UInt64, _ new: UInt64) {
    if ordinal < UInt64(numbers.count) { numbers[Int(ordinal)] = new }
  }
}

extension ArchivedSnapshot {
  /// Says of a snapshot without a manifest who found it, and when.
  fileprivate mutating func describe(_ options: RepositoryPacker.Options) {
    var found = snapshot
    found.createdAt = options.createdAt
    found.tool = options.tool
    found.hostSystem = options.hostSystem
    self = ArchivedSnapshot(found: found, in: reader)
  }
}
