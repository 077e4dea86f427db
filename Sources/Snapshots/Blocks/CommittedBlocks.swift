internal import ATProtocol
package import Archive
internal import Files
package import IPLD
package import SystemPackage

/// The blocks of one or more CARs that a commit leads to, found without a table of all the others.
///
/// A server may send any number of blocks that have nothing to do with the account. What is in
/// memory of each is a slot of a
/// `BlockTable`, and nothing of those that could not be verified anyway.
package struct CommittedBlocks {
  /// That the blocks do not make a whole repository.
  package struct Incomplete: Error {}

  /// A CAR in which blocks are looked for.
  package struct Source {
    package let car: MappedFile
    package let header: CARHeader
    let payload: Range<Int>
    /// Where blocks are.
    let table: BlockTable
    /// How many sections the CAR has, of every kind.
    package let sectionCount: Int
    /// Whether there is a raw block among them.
    let hasRaw: Bool

    /// Reads a CAR twice, once to count the sections, so that the table takes no more memory than
    /// it must.
    ///
    /// - Parameters:
    ///   - car: the CAR.
    ///   - isTrusted: whether blocks count whose CIDs are not as AT Protocol has them.
    /// - Throws: `CARError` if it is malformed.
    package init(_ car: MappedFile, isTrusted: Bool = false) throws(CARError) {
      self.car = car
      let (payload, header) = try car.withBytes { bytes throws(CARError) in
        let payload = try CARVersion2.payload(of: bytes)
        let header = try CARHeader(
          bytes.extracting(0..<payload.upperBound), at: payload.lowerBound)
        return (payload, header)
      }
      var (sectionCount, commonCount) = (0, 0)
      try Self.forEachSection(car, header, payload) { _, cid, _ in
        sectionCount += 1
        if isTrusted || CommonCID(cid) != nil { commonCount += 1 }
      }
      var table = BlockTable(expecting: commonCount)
      var hasRaw = false
      try Self.forEachSection(car, header, payload) { section, cid, bytes in
        guard isTrusted || CommonCID(cid) != nil else { return }
        table.insert(section, cid, in: bytes)
        if cid.codec == .raw { hasRaw = true }
      }
      (self.payload, self.header, self.table) = (payload, header, table)
      (self.sectionCount, self.hasRaw) = (sectionCount, hasRaw)
    }

    /// How far it goes until pages are released, in bytes.
    private static let step = 32 << 20

    private static func forEachSection(
      _ car: MappedFile, _ header: CARHeader, _ payload: Range<Int>,
      _ body: (CARSection, CID, Span<UInt8>) -> Void
    ) throws(CARError) {
      try car.withBytes { bytes throws(CARError) in
        var cursor = CARCursor(header: header, payload: payload)
        var released = 0
        while let (section, cid) = try cursor.next(in: bytes) {
          body(section, cid, bytes)
          if section.end - released >= step {
            released = section.end
            car.releasePages()
          }
        }
      }
    }

    /// How many bytes its sections take.
    package var byteCount: Int { payload.count - header.length }

    /// Where the section of a block begins; nil if it is not there.
    package func start(of cid: CID) -> Int? {
      car.withBytes { table.place(of: cid, in: $0) }.map(table.start)
    }

    /// The bytes of a block; nil if it is not there.
    package func body(of cid: CID) -> [UInt8]? {
      guard let start = start(of: cid) else { return nil }
      return car.withBytes { bytes in bytes.array(CARSection.body(at: start, in: bytes)) }
    }
  }

  /// Where the blocks may be; of a block that is in several, the first counts.
  package let sources: [Source]
  /// Whether the tree keeps its rules, and every node and record was found.
  package private(set) var isWhole = false
  /// Why there is no commit to begin with; nil if there is one.
  private(set) var commitError: RepositoryError?
  /// The blocks in the order in which the tree leads to them, each once, as places.
  private(set) var places: [Int] = []
  /// How many of them the tree consists of; behind them are blobs.
  private var treeCount = 0
  /// How many of them each source has, and how many bytes their sections take there.
  package private(set) var amounts: [(count: Int, bytes: Int)]

  /// A place is that of a block in the table of its source, counted through all sources.
  private let firstPlaces: [Int]
  private var reached: BlockSet
  private let placeCount: Int
  private let root: CID?

  /// Finds the blocks that the first root of the first CAR leads to.
  package init(_ sources: [Source]) {
    self.sources = sources
    var count = 0
    var firstPlaces: [Int] = []
    for source in sources {
      firstPlaces.append(count)
      count += source.table.placeCount
    }
    self.firstPlaces = firstPlaces
    reached = BlockSet(count: count)
    placeCount = count
    amounts = sources.map { _ in (0, 0) }
    root = sources.first?.header.roots.first
    walk()
    for source in sources { source.car.releasePages() }
  }

  /// Finds the blocks that the root of what a server sent leads to, there or in the snapshot
  /// before.
  ///
  /// - Throws: ``Incomplete`` if the two do not make a whole repository; `ArchiveError` and
  ///   ``SnapshotError`` for a snapshot that is damaged.
  package init(_ sent: Source, after base: ArchivedSnapshot?) throws {
    var sources = [sent]
    if let base {
      let restored = try RestoredRepository(base)
      guard restored.isExact else { throw Incomplete() }
      sources.append(try Source(restored.mapped))
    }
    self.init(sources)
    guard isWhole else { throw Incomplete() }
  }

  /// The header of a CAR with these blocks only.
  private var header: [UInt8] { CARHeader(roots: root.map { [$0] } ?? []).bytes }

  // MARK: Finding them

  private mutating func walk() {
    let commit: Commit
    do throws(RepositoryError) {
      guard let root else { throw .noRoot }
      guard let place = self.place(of: root) else { throw .commitMissing(root) }
      commit = try withSection(place) { bytes, section throws(RepositoryError) in
        try Commit(bytes.extracting(section.bodyRange))
      }
      reach(place)
    } catch {
      commitError = error
      return
    }
    var entered = BlockSet(count: placeCount)
    var blobs = sources.contains { $0.hasRaw } ? [Int]() : nil
    var scanner = RecordScanner()
    var isMissing = false
    var walker = MSTWalker(root: commit.data)
    while let step = walker.next() {
      guard let place = self.place(of: step, walker) else {
        isMissing = true
        if case .node = step { walker.skip() }
        continue
      }
      switch step {
      case .node where entered.contains(place): walker.skipRepeated()
      case .node:
        entered.insert(place)
        reach(place)
        withBody(place) { body in walker.enter(body) { $1 += $0.map { self.place(of: $0.cid) } } }
      case .record:
        guard !reached.contains(place) else { continue }
        reach(place)
        guard blobs != nil else { continue }
        _ = withBody(place) { body in
          scanner.scan(body) { if let blob = self.place(of: $0.cid) { blobs?.append(blob) } }
        }
      }
    }
    treeCount = places.count
    // Blobs that the CAR brings along are the account's as well.
    for place in blobs ?? [] { reach(place) }
    isWhole = !isMissing && walker.problemCount == 0
  }

  private func place(of step: MSTWalker.Step, _ walker: MSTWalker) -> Int? {
    switch step {
    case .node(let cid), .record(let cid): walker.place ?? place(of: cid)
    }
  }

  private func place(of cid: CID) -> Int? {
    for (source, first) in zip(sources, firstPlaces) {
      if let place = source.car.withBytes({ source.table.place(of: cid, in: $0) }) {
        return first + place
      }
    }
    return nil
  }

  private mutating func reach(_ place: Int) {
    guard !reached.contains(place) else { return }
    reached.insert(place)
    places.append(place)
    let source = source(of: place)
    amounts[source].count += 1
    amounts[source].bytes += withSection(place) { _, section in section.end - section.start }
  }

  private func source(of place: Int) -> Int {
    var number = firstPlaces.count - 1
    while firstPlaces[number] > place { number -= 1 }
    return number
  }

  private func withBody<Value>(_ place: Int, _ body: (Span<UInt8>) -> Value) -> Value {
    withSection(place) { bytes, section in body(bytes.extracting(section.bodyRange)) }
  }

  private func withSection<Value, Failure: Error>(
    _ place: Int, _ body: (Span<UInt8>, CARSection) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let number = source(of: place)
    let source = sources[number]
    return try source.car.withBytes { bytes throws(Failure) in
      try body(bytes, source.table.section(place - firstPlaces[number], in: bytes))
    }
  }

  // MARK: Writing them

  /// Writes a CAR of these blocks in canonical order: the commit, then the tree in pre-order, each
  /// record after the entry that names it; every block once.
  ///
  /// It is the order that lets a reader follow a stream with little memory ([AT Protocol,
  /// Repository, "CAR File
  /// Serialization"](https://atproto.com/specs/repository#car-file-serialization)).
  ///
  /// - Parameters:
  ///   - folder: where; nil for the folder of temporary files.
  ///   - withBlobs: whether the blobs follow that are among the blocks.
  /// - Throws: `RepositoryError` if there is no commit; ``BackupError`` if there is no room for it.
  package func writeInOrderOfTree(folder: FilePath? = nil, withBlobs: Bool) throws -> MappedFile {
    if let commitError { throw commitError }
    let file = try TemporaryFile(in: folder)
    try file.write(header.span)
    for place in withBlobs ? places[...] : places.prefix(treeCount) {
      try withSection(place) { (bytes, section) throws in
        try file.write(bytes.extracting(section.start..<section.end))
      }
    }
    return try file.map()
  }

  /// Writes a CAR of these blocks in the order in which they stand in the sources.
  ///
  /// - Throws: ``BackupError`` if there is no room for it.
  package func writeInOrderOfSources(folder: FilePath) throws -> MappedFile {
    let file = try TemporaryFile(in: folder)
    try file.write(header.span)
    for (source, first) in zip(sources, firstPlaces) {
      try source.car.withBytes { bytes throws in
        var cursor = CARCursor(header: source.header, payload: source.payload)
        while let (section, cid) = try cursor.next(in: bytes) {
          guard let place = source.table.place(of: cid, in: bytes), reached.contains(first + place),
            source.table.start(place) == section.start
          else { continue }
          try file.write(bytes.extracting(section.start..<section.end))
        }
      }
      source.car.releasePages()
    }
    return try file.map()
  }
}
