internal import ATProtocol
internal import Archive
internal import IPLD

/// Copies snapshots from archives into a new one, the oldest first, with all that they need and nothing else.
///
/// That is, for each: the sections of its CAR in their order; the blobs that its records refer to, as far as an archive at hand holds
/// them; the pages of its lists and the extras on them; the documents of its identity; whatever fields lead to that are not known here.
/// The manifest says what it said, but for the manifest before it and the order of the sections.
///
/// 1. A section is copied once and a record looked into once, however many snapshots share them. Which blobs a snapshot needs is what the walk
///    through its tree comes to, as when it was packed; what a stray block refers to is not needed.
/// 2. What is read has been hashed before it is appended, by the reader and by the writer.
/// 3. A manifest is alone in its frame, also if several are in one generation. They come behind everything else, so that packs are full, and what
///    changed little from one snapshot to the next lies where it compresses well.
struct SnapshotCopier {
  let sources: [IntactArchive]
  var copied: [CopiedSections]
  var needs: [BlobNeeds]
  private var previous: CID?
  private var bases = OrderBases()
  /// The manifests that have not been appended.
  private var waiting: [Block] = []
  private var waitingLength = 0
  /// How many bytes of manifests are kept in memory.
  private static let maximumWaiting = 8 << 20
  let observer: Progress.Observer

  /// A copier from these archives.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file; `ArchiveError` if an archive cannot be read.
  init(_ sources: [IntactArchive], observer: @escaping Progress.Observer = { _ in }) throws {
    self.sources = sources
    self.observer = observer
    copied = sources.map { CopiedSections(count: $0.reader.generation.sectionCount) }
    needs = try sources.map { source in try BlobNeeds(source.reader, observer) }
  }

  /// Copies a snapshot, but for its manifest.
  ///
  /// - Parameters:
  ///   - manifest: its manifest.
  ///   - source: the number of the archive it is in.
  ///   - writer: the new archive.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if something is not there or not what it has to be; what the writer throws.
  mutating func copy(
    _ manifest: CID, from source: Int, into writer: inout ArchiveWriter
  ) throws {
    let archive = sources[source]
    let reader = archive.reader
    let (archived, order, map) = try archive.reading {
      let archived = try ArchivedSnapshot(manifest, in: reader)
      return (archived, try archived.order(), try ManifestMap(archived))
    }
    let newOrder = try copyCAR(archived, order, from: source, into: &writer)
    try copyBlobs(
      needs[source].blobs(of: archived.snapshot.commit, in: order), preferring: source,
      into: &writer)
    try copyLists(archived, from: source, into: &writer)
    try copyIdentity(archived, from: source, into: &writer)
    try follow(map.furtherLinks, from: source, into: &writer)
    try noteReplaced(archived, in: source)
    observer(Progress(stage: "copying", done: writer.bytesWritten, total: 0))
    try finish(map, newOrder, of: archived.snapshot.did, into: &writer)
  }

  /// How many sections of the archives are not in the new one, nor another in their place.
  var leftOutCount: Int { copied.reduce(0) { $0 + $1.leftOutCount } }

  /// Takes note of what is not copied, but made again.
  private mutating func noteReplaced(_ archived: ArchivedSnapshot, in source: Int) throws {
    var made = [archived.cid].compactMap(\.self)
    if case .pages(let pages) = archived.snapshot.car.order { made += pages }
    for cid in made {
      if let ordinal = try ordinal(of: cid, in: source) { copied[source].noteReplaced(ordinal) }
    }
  }

  /// Copies the sections of a CAR, and answers with their order in the new archive.
  private mutating func copyCAR(
    _ archived: ArchivedSnapshot, _ order: BlockOrder, from source: Int,
    into writer: inout ArchiveWriter
  ) throws -> BlockOrder {
    // No section has fewer bytes than its length and its CID: what is more than that would only cost time.
    guard order.count <= archived.snapshot.car.byteCount else {
      throw BackupError.damagedArchive(sources[source].name, "\(SnapshotError.malformedOrder)")
    }
    try copySections(
      order.runs, from: source, limit: archived.snapshot.car.byteCount, into: &writer)
    var newOrder = BlockOrder()
    for run in order.runs {
      for ordinal in run {
        guard let new = copied[source][ordinal] else {
          throw BackupError.copyFailed("a section was passed over")
        }
        newOrder.append(new)
      }
      guard newOrder.runs.count <= BlockOrder.maximumRuns else {
        throw BackupError.damagedArchive(sources[source].name, "\(SnapshotError.malformedOrder)")
      }
    }
    return newOrder
  }

  /// Makes the manifest.
  private mutating func finish(
    _ map: ManifestMap, _ order: BlockOrder, of did: DID, into writer: inout ArchiveWriter
  ) throws {
    var map = map
    let written = try order.written(after: bases[did])
    try Self.writing {
      for page in written.pages { try writer.append(page.cid, page.bytes.span) }
    }
    map.setOrder(written.order, base: written.base)
    map.setPrevious(previous)
    let block = try map.block()
    previous = block.cid
    bases.note(order, of: did, manifest: block.cid, depth: written.depth)
    waiting.append(block)
    waitingLength += block.bytes.count
    if waitingLength > Self.maximumWaiting { try appendManifests(to: &writer) }
  }

  /// Appends the manifests that have not been, each in a frame of its own.
  ///
  /// - Returns: The newest.
  @discardableResult
  mutating func appendManifests(to writer: inout ArchiveWriter) throws -> CID? {
    for manifest in waiting {
      try Self.writing {
        try writer.flush()
        try writer.append(manifest.cid, manifest.bytes.span)
        try writer.flush()
      }
    }
    (waiting, waitingLength) = ([], 0)
    return previous
  }
}

/// The orders of the newest snapshots of each account so far, as many of them as is reasonable.
private struct OrderBases {
  /// How many runs are kept, of all accounts together: 64 MiB.
  private static let maximumRuns = 1 << 22

  private var bases: [DID: OrderBasis] = [:]
  private var runCounts: [DID: Int] = [:]
  private var runCount = 0

  subscript(did: DID) -> OrderBasis? { bases[did] }

  mutating func note(_ order: BlockOrder, of did: DID, manifest: CID, depth: Int) {
    bases[did] = nil
    runCount -= runCounts.removeValue(forKey: did) ?? 0
    guard order.runs.count <= Self.maximumRuns else { return }
    // Accounts whose order is forgotten write their next one as it is.
    if runCount + order.runs.count > Self.maximumRuns { self = OrderBases() }
    bases[did] = OrderBasis(manifest: manifest, depth: depth) { order }
    runCounts[did] = order.runs.count
    runCount += order.runs.count
  }
}
