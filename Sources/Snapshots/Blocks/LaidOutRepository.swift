package import ATProtocol
internal import Archive
package import Files
package import IPLD
package import Repository

/// The repository of a snapshot, all of which has been laid out and walked, to be asked for single
/// things, often and in any order, by several threads at a time.
///
/// An archive keeps blocks in packs of 1 MiB, which is quick to read from end to end and slow to
/// jump about in. Here every block is read and hashed once and lies in a file without a name;
/// thirty bytes for each are in memory.
///
/// ```swift
/// let repository = try LaidOutRepository(of: snapshot)
/// let page = try repository.records(in: "app.bsky.feed.post", limit: 50, .descending)
/// ```
/// Of a snapshot that is damaged it has what is left, and says why in ``flaw``.
package struct LaidOutRepository: Sendable {
  /// The snapshot.
  package let archived: ArchivedSnapshot
  /// The result of the walk through the tree.
  package let tree: RepositoryInspection
  /// Why the repository is incomplete or changed; nil if it is intact.
  package let flaw: String?
  /// Whether it is complete and unchanged.
  package var isWhole: Bool { flaw == nil && tree.isComplete }
  /// Whether the names of all its records are known.
  package var listsAllRecords: Bool {
    flaw == nil && tree.commit != nil && tree.missingNodes.isEmpty
  }
  /// Its blocks.
  let blocks: LaidOutBlocks
  /// The blobs that are held though no record refers to them, if they were asked for.
  private var extras: Set<CID> = []

  /// A repository that has been walked.
  package init(
    archived: ArchivedSnapshot, tree: RepositoryInspection, flaw: String?, blocks: LaidOutBlocks
  ) {
    (self.archived, self.tree, self.flaw, self.blocks) = (archived, tree, flaw, blocks)
  }

  /// Lays a snapshot out, and keeps the bytes of every record.
  ///
  /// - Throws: `ArchiveError`, ``SnapshotError`` or `RepositoryError` if not even the commit can be
  ///   read; ``BackupError`` if there is no room for a temporary file, or the CAR is longer than
  ///   ``RestoredRepository/maximumLength(in:)``.
  package init(of archived: ArchivedSnapshot) throws {
    self = try SnapshotBlocks(archived, keepsRecords: true).contents()
    _ = try archived.treeRoot
    extras = Set(try archived.readable { try $0.extras() } ?? [])
    releasePages()
  }

  /// The root of the tree of records; there is none without a commit.
  private var root: CID { tree.commit?.data ?? archived.snapshot.commit }

  /// The blobs that records refer to.
  package var blobs: BlobTable { tree.blobs }

  /// Why something is not in it.
  package func absence(of what: String) -> BackupError {
    if let flaw { return .notInRemains(what, flaw) }
    return listsAllRecords
      ? .notFound(what) : .notInPart(what, missingNodes: tree.missingNodes.count)
  }

  /// Releases the pages that have been read; they are read again when needed.
  package func releasePages() {
    blocks.releasePages()
    archived.reader.releasePages()
  }

  // MARK: Blocks

  /// Calls `use` with the bytes of a block of the repository; returns nil if it has none with this
  /// CID.
  package func withBlock<Value>(_ cid: CID, _ use: (Span<UInt8>) throws -> Value) rethrows -> Value?
  {
    guard let number = blocks.number(of: cid), blocks.kind(number) != .other else { return nil }
    return try blocks.withBody(number) { body throws in try use(body) }
  }

  /// The bytes of a block of the repository; nil if it has none with this CID.
  package func block(_ cid: CID) -> [UInt8]? { withBlock(cid) { $0.array } }

  /// The record with this path, `collection/rkey`: its CID and its bytes; nil if there is none.
  ///
  /// - Throws: `SnapshotError` if its block is missing; `MSTProblem`.
  package func record(_ path: String) throws -> Block? {
    guard let cid = try recordCID(path) else { return nil }
    guard let bytes = block(cid) else { throw SnapshotError.blockMissing(cid) }
    return Block(cid: cid, bytes: bytes)
  }

  /// The CID that the tree has for the record with this path, be its block there or not; nil if
  /// there is no such record.
  ///
  /// - Throws: `MSTProblem`, also where a node on the way is missing.
  package func recordCID(_ path: String) throws -> CID? {
    try MSTDescent.find(path.utf8, below: root, block)
  }

  /// A proof that there is a record with this path, or that there is none: a CAR.
  ///
  /// - Throws: `RecordProofFault` where a block is missing or illegal.
  package func proof(of path: RecordPath) throws -> [UInt8] {
    try RecordProof.make(of: path, commit: archived.snapshot.commit) { cid in block(cid) }
  }

  /// The blocks that another snapshot does not have: the commit, then the others in the order of
  /// the archive.
  ///
  /// Together with that snapshot's they are all blocks of this one.
  package func blocks(notIn other: LaidOutRepository) -> [CID] {
    let head = archived.snapshot.commit
    var found: [CID] = []
    for number in blocks.numbers where blocks.kind(number) != .other {
      let cid = blocks.cid(number)
      if other.blocks.number(of: cid) == nil { found.append(cid) }
    }
    if let place = found.firstIndex(of: head) { found.insert(found.remove(at: place), at: 0) }
    return found
  }

  // MARK: Records

  /// The keys of records of one collection, and their CIDs, in the order of the keys or against it.
  ///
  /// - Parameters:
  ///   - collection: which.
  ///   - key: the record key after which to begin, in this direction; nil for the first.
  ///   - limit: how many at most.
  ///   - direction: which way.
  /// - Throws: `MSTProblem`.
  package func records(
    in collection: String, after key: String? = nil, limit: Int,
    _ direction: MSTDescent.Direction
  ) throws -> [(recordKey: String, cid: CID)] {
    let prefix = Array("\(collection)/".utf8)
    var bound = prefix
    if let key {
      bound += Array(key.utf8)
    } else if direction == .descending {
      // The character after the slash.
      bound[bound.count - 1] += 1
    }
    var descent = MSTDescent(root: root, direction, after: bound)
    var found: [(recordKey: String, cid: CID)] = []
    while found.count < limit, let record = try descent.next(block),
      record.key.starts(with: prefix)
    {
      let key = String(decoding: record.key.dropFirst(prefix.count), as: UTF8.self)
      found.append((key, record.cid))
    }
    return found
  }

  /// Passes on every record in the order of the keys: its path, its CID, and its bytes, or nil if
  /// they are missing.
  ///
  /// - Throws: `MSTProblem` where keys are not in order; what `visit` throws.
  /// - Returns: how many tree nodes are missing or malformed, whose records were passed over.
  @discardableResult
  package func forEachRecord(_ visit: (String, CID, [UInt8]?) throws -> Void) throws -> Int {
    var descent = MSTDescent(root: root, .ascending)
    var lostNodes = 0
    while true {
      let record: (key: [UInt8], cid: CID)?
      do {
        record = try descent.next(block)
      } catch let problem as MSTProblem where problem.isOfOneNode {
        lostNodes += 1
        continue
      }
      guard let record else { return lostNodes }
      try visit(String(decoding: record.key, as: UTF8.self), record.cid, block(record.cid))
    }
  }

  /// The collections that have records, in the order of their names.
  ///
  /// - Throws: `MSTProblem`.
  package func collections() throws -> [String] {
    var found: [String] = []
    var descent = MSTDescent(root: root, .ascending)
    var current: ArraySlice<UInt8> = []
    // To leap over the rest of a collection costs as much as many steps. So it is done after twice
    // as many steps each time, and however many collections there are, this is hardly more than one
    // walk.
    var (steps, leap) = (0, 64)
    while let record = try descent.next(block) {
      guard let slash = record.key.firstIndex(of: UInt8(ascii: "/")) else { continue }
      let collection = record.key[..<slash]
      steps += 1
      if collection != current {
        found.append(String(decoding: collection, as: UTF8.self))
        (current, steps) = (collection, 0)
      } else if steps == leap {
        descent = MSTDescent(root: root, .ascending, after: collection + [UInt8(ascii: "/") + 1])
        leap *= 2
      }
    }
    return found
  }

  // MARK: Blobs

  /// Whether a blob is the account's: a record refers to it, or the server had it anyway.
  package func owns(_ blob: CID) -> Bool { blobs.contains(blob) || extras.contains(blob) }

  /// The blobs that the archive holds, those to which no record refers included, in the order of
  /// their digests.
  ///
  /// - Throws: `ArchiveError` if the archive cannot be read.
  package func heldBlobs() throws -> [CID] {
    let known = blobs.entries.map(\.cid) + extras.filter { !blobs.contains($0) }
    let states = try archived.states(of: known)
    let held = zip(known, states).filter(\.1.isHeld).map(\.0)
    return held.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }
}
