internal import ATProtocol
internal import Archive
internal import IPLD

/// Snapshots of which something may be lost.
extension ArchiveSalvager {
  /// Writes a snapshot's manifest anew, for what is left of it.
  mutating func rewrite(_ archived: ArchivedSnapshot, into writer: inout ArchiveWriter) throws {
    let left = try Remainder(archived, numbers, &writer)
    var snapshot = archived.snapshot
    var lostBlobs: [CID] = []
    var inspection: RepositoryInspection?
    if left.lostCount > 0 || report.lostSectionCount > 0 || !report.lostSnapshots.isEmpty {
      let found = try left.car.map().withBytes { bytes throws in
        try RepositoryInspector.inspect(bytes, verifying: false)
      }
      inspection = found
      (snapshot.blobs, lostBlobs) = try blobs(of: found, before: snapshot.blobs, &writer)
      if !lostBlobs.isEmpty {
        try noteLost(lostBlobs, of: archived, in: &snapshot, &writer)
      }
      if left.lostCount > 0 {
        snapshot.isComplete = snapshot.isComplete && found.isComplete
        snapshot.counts = Snapshot.Counts(
          records: found.recordCount, nodes: found.nodeCount, blocks: found.blocks.count)
      }
    }
    if left.lostCount > 0 {
      snapshot.car.byteCount = UInt64(left.car.count)
      snapshot.car.sha256 = left.sha256
      snapshot.car.sectionCount = left.order.count
    }
    let written = try left.order.written(after: bases[snapshot.did])
    for page in written.pages { try writer.append(page.cid, page.bytes.span) }
    snapshot.car.order = written.order
    snapshot.car.base = written.base
    snapshot.previous = previous
    // Fields that are not known here are kept.
    var map = try archived.cid.map { _ in try ManifestMap(archived) }
    try map?.update(with: snapshot)
    let bytes = try map.map { try $0.block().bytes } ?? snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    try writer.flush()
    try writer.append(cid, bytes.span)
    try writer.flush()
    previous = cid
    let order = left.order
    bases[snapshot.did] = OrderBasis(manifest: cid, depth: written.depth) { order }
    report.snapshots.append(
      Outcome(
        did: snapshot.did, rev: snapshot.rev, old: archived.cid, new: cid,
        lostBlockCount: left.lostCount, lostRecords: inspection?.missingRecords ?? [],
        lostRecordCount: inspection?.missingRecordCount ?? 0, lostBlobs: lostBlobs))
  }

  /// The blobs in figures, and those that were held and are not in the new archive.
  private func blobs(
    of inspection: RepositoryInspection, before: Snapshot.BlobCounts,
    _ writer: inout ArchiveWriter
  ) throws -> (Snapshot.BlobCounts, [CID]) {
    var counts = Snapshot.BlobCounts()
    var absent: [CID] = []
    for entry in inspection.blobs.entries {
      counts.referenced += 1
      guard try writer.ordinal(of: entry.cid) != nil else {
        absent.append(entry.cid)
        continue
      }
      counts.held += 1
      counts.heldBytes += try reader.section(of: entry.cid)?.bodyLength ?? 0
    }
    counts.extras = before.extras
    counts.extrasBytes = before.extrasBytes
    // Those that were missing before are not lost now; which they were, the reader's index can tell.
    let lost = try absent.filter { cid in
      do {
        return try reader.section(of: cid) != nil
      } catch let error as ArchiveError where error.reason.isDamage {
        return true
      }
    }
    return (counts, lost)
  }

  /// Writes down that blobs were lost.
  private func noteLost(
    _ lost: [CID], of archived: ArchivedSnapshot, in snapshot: inout Snapshot,
    _ writer: inout ArchiveWriter
  ) throws {
    var missing: [BlobLedger.Missing] = []
    do {
      missing = try archived.missingBlobs()
    } catch let error as ArchiveError where error.reason.isDamage {
      // The list of why others are missing is lost itself.
    } catch is SnapshotError {
      // It is not there, or not what it should be.
    }
    let known = Set(missing.map(\.cid))
    missing += lost.filter { !known.contains($0) }
      .map { BlobLedger.Missing(cid: $0, reason: .lost, size: nil) }
    let pages = try BlobLedger.pages(missing: missing)
    for page in pages { try writer.append(page.cid, page.bytes.span) }
    snapshot.missingPages = pages.map(\.cid)
  }
}

/// What is left of a snapshot's CAR, and where it lies in the new archive.
private struct Remainder {
  /// The CAR.
  let car: TemporaryFile
  /// Its SHA-256.
  let sha256: SHA256Digest
  /// The order of its sections in the new archive.
  let order: BlockOrder
  /// How many sections are lost.
  let lostCount: UInt64

  init(
    _ archived: ArchivedSnapshot, _ numbers: [UInt64], _ writer: inout ArchiveWriter
  ) throws {
    let reader = archived.reader
    let car = try TemporaryFile()
    var order = BlockOrder()
    var lost: UInt64 = 0
    try car.write(archived.snapshot.car.header.span)
    var runs: [Range<UInt64>] = []
    do {
      guard archived.cid != nil else { throw SnapshotError.noSnapshot }
      runs = try archived.order().runs
    } catch let error as ArchiveError where error.reason.isDamage {
      runs = try Self.reachable(archived)
    } catch is SnapshotError {
      runs = try Self.reachable(archived)
    }
    for ordinal in runs.joined() {
      guard let new = try Self.number(ordinal, numbers, reader, &writer) else {
        lost += 1
        continue
      }
      let mark = car.count
      do {
        try reader.copySections(CollectionOfOne(ordinal..<ordinal + 1)) { try car.write($0) }
        order.append(new)
      } catch let error as ArchiveError where error.reason.isDamage {
        try car.truncate(to: mark)
        lost += 1
      }
    }
    // Of an order that is lost, too, only the number of sections is known.
    let count = archived.snapshot.car.sectionCount
    lostCount = max(lost, count - min(order.count, count))
    self.car = car
    self.order = order
    sha256 = try car.map().withBytes { SHA256.digest(of: $0) }
  }

  /// The number that a section has in the new archive.
  private static func number(
    _ ordinal: UInt64, _ numbers: [UInt64], _ reader: ArchiveReader,
    _ writer: inout ArchiveWriter
  ) throws -> UInt64? {
    if ordinal < UInt64(numbers.count) {
      return numbers[Int(ordinal)] == .max ? nil : numbers[Int(ordinal)]
    }
    return try writer.ordinal(of: reader.section(at: ordinal).cid)
  }

  /// The commit, the nodes and the records that are left, in the order of the tree: for a CAR whose own order is lost (FORMAT 6.1).
  private static func reachable(_ archived: ArchivedSnapshot) throws -> [Range<UInt64>] {
    let reader = archived.reader
    var order = BlockOrder()
    var seen: Set<UInt64> = []
    func take(_ cid: CID) throws -> [UInt8]? {
      do {
        guard let section = try reader.section(of: cid),
          let body = try reader.body(of: cid)
        else { return nil }
        if seen.insert(section.ordinal).inserted { order.append(section.ordinal) }
        return body
      } catch let error as ArchiveError where error.reason.isDamage {
        return nil
      }
    }
    guard let commit = try take(archived.snapshot.commit) else { return [] }
    var walker = MSTWalker(root: try Commit(commit.span).data)
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        if let node = try take(cid) { walker.enter(node.span) } else { walker.skip() }
      case .record(let cid): _ = try take(cid)
      }
    }
    return order.runs
  }
}
