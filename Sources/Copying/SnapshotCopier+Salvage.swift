internal import ATProtocol
internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// Describing what is left of a snapshot in a damaged archive.
extension SnapshotCopier {
  /// The sections of a CAR that were copied, and what else its commit leads to.
  ///
  /// An order that cannot be read is replaced by the canonical one. Behind damage sections may be
  /// in the file under other ordinals than the order names.
  ///
  /// - Parameter listed: the order; nil if it cannot be read.
  mutating func whatIsLeft(
    of archived: ArchivedSnapshot, _ listed: BlockOrder?, from source: Int
  ) throws -> CopiedCAR {
    var left = BlockOrder()
    for ordinal in (listed?.runs ?? []).joined() where sections.copied[source][ordinal] != nil {
      left.append(ordinal)
    }
    if let listed, left == listed { return CopiedCAR(order: listed) }
    for ordinal in sections.blocks[source].reachable(
      from: archived.snapshot.commit, besides: left)
    {
      try sections.copy([ordinal..<ordinal + 1], from: source, limit: .max)
      if sections.copied[source][ordinal] != nil { left.append(ordinal) }
    }
    let count = archived.snapshot.car.sectionCount
    var car = CopiedCAR(order: left, lostCount: count - min(left.count, count))
    let (byteCount, digest) = try measure(archived.snapshot.car.header, left, from: source)
    car.isExact =
      (byteCount, digest) == (archived.snapshot.car.byteCount, archived.snapshot.car.sha256)
    (car.byteCount, car.sha256) = (byteCount, digest)
    return car
  }

  /// The length and the digest of a CAR.
  private func measure(_ header: [UInt8], _ order: BlockOrder, from source: Int) throws -> (
    UInt64, SHA256Digest
  ) {
    var hash = SHA256()
    var count = UInt64(header.count)
    hash.update(header.span)
    try sections.sources[source].reader.copyCAR(order.runs, limit: .max) { bytes in
      hash.update(bytes)
      count += UInt64(bytes.count)
    }
    return (count, hash.finish())
  }

  /// Takes over into a manifest what is left, and notes what is lost.
  mutating func describe(
    _ archived: ArchivedSnapshot, _ car: CopiedCAR, _ tree: SharedTrees.Tree, _ lists: CopiedLists,
    from source: Int,
    in snapshot: inout Snapshot, _ loss: inout SnapshotLoss
  ) throws {
    if let sha256 = car.sha256, !car.isExact {
      snapshot.car.byteCount = car.byteCount
      snapshot.car.sha256 = sha256
      snapshot.car.sectionCount = car.order.count
      snapshot.counts.records = tree.recordCount
      snapshot.counts.nodes = tree.nodeCount
      snapshot.counts.blocks = sections.blocks[source].distinctCount(car.order)
      snapshot.isComplete = tree.isComplete
    }
    if let lost = snapshot.didDocument, loss.documents.contains(lost) { snapshot.didDocument = nil }
    if let lost = snapshot.plcLog, loss.documents.contains(lost) { snapshot.plcLog = nil }
    var missing = lists.missing
    try describeBlobs(archived, car, tree, from: source, in: &snapshot, &missing, &loss)
    try describeExtras(lists, from: source, in: &snapshot, &missing, &loss)
    if lists.hasLostReasons || !loss.blobs.isEmpty {
      snapshot.missingPages = try append(BlobLedger.pages(missing: missing))
      // A lost page takes what was accepted with it.
      snapshot.blobs.accepted = missing.count { $0.accepted != nil }
    }
  }

  /// Counts the blobs that records refer to again, if some are lost.
  private mutating func describeBlobs(
    _ archived: ArchivedSnapshot, _ car: CopiedCAR, _ tree: SharedTrees.Tree, from source: Int,
    in snapshot: inout Snapshot,
    _ missing: inout [BlobLedger.Missing], _ loss: inout SnapshotLoss
  ) throws {
    let known = sections.blocks[source].blobs
    let explained = Set(missing.map(\.cid))
    var (held, lost, unexplained): ([Int], [Int], [Int]) = ([], [], [])
    for blob in sections.blocks[source].blobs(of: tree) {
      switch blobs[source][blob] {
      case .copied: held.append(blob)
      case .lost: lost.append(blob)
      case .absent, nil: if !explained.contains(known[blob].cid) { unexplained.append(blob) }
      }
    }
    // An index that was rebuilt does not know what is lost; the figures of the manifest may.
    var further = snapshot.blobs.held - held.count - lost.count
    if archived.cid == nil {
      // No manifest says which of them were held; they are asked for again as those that were.
      lost += unexplained
    }
    if tree.isComplete, further > 0, further == unexplained.count {
      lost += unexplained
      further = 0
    }
    loss.blobs = lost.map { known[$0].cid }
    loss.blobCount = lost.count + (tree.isComplete ? max(further, 0) : 0)
    guard loss.blobCount > 0 || !car.isExact else { return }
    snapshot.blobs.referenced = tree.blobCount
    snapshot.blobs.held = held.count
    snapshot.blobs.heldBytes = try length(of: held, from: source)
    missing.note(lost: lost.map { (known[$0].cid, known[$0].size) }, areReferenced: true)
  }

  /// Lists the extras that are left, if some are lost.
  private mutating func describeExtras(
    _ lists: CopiedLists, from source: Int, in snapshot: inout Snapshot,
    _ missing: inout [BlobLedger.Missing], _ loss: inout SnapshotLoss
  ) throws {
    guard lists.hasLostExtras || !lists.lostExtras.isEmpty || !lists.strays.isEmpty else { return }
    let reader = sections.sources[source].reader
    loss.blobCount += max(snapshot.blobs.extras - lists.extras.count, 0)
    let extras = lists.extras + lists.strays
    snapshot.extrasPages = try append(BlobLedger.pages(extras: extras))
    snapshot.blobs.extras = extras.count
    snapshot.blobs.extrasBytes = try reader.states(extras.count) { extras[$0] }
      .reduce(0) { $0 + ($1.bodyLength ?? 0) }
    snapshot.blobs.listedMissing += lists.lostExtras.count
    loss.blobs += lists.lostExtras
    missing.note(lost: lists.lostExtras.map { ($0, nil) }, areReferenced: false)
  }

  /// How many bytes blobs have that were copied.
  mutating func length(of held: [Int], from source: Int) throws -> UInt64 {
    let known = sections.blocks[source].blobs
    blobLengths[source] += repeatElement(.max, count: known.count - blobLengths[source].count)
    var uncounted = held.filter { blobLengths[source][$0] == .max }.map { ($0, known[$0].cid) }
    for archive in [sections.sources[source]] + sections.sources where !uncounted.isEmpty {
      let cids = uncounted.map(\.1)
      let states = try archive.reader.states(cids.count) { cids[$0] }
      for ((blob, _), state) in zip(uncounted, states) {
        if let length = state.bodyLength { blobLengths[source][blob] = length }
      }
      uncounted.removeAll { blobLengths[source][$0.0] != .max }
    }
    return held.reduce(0) { $0 + (blobLengths[source][$1] == .max ? 0 : blobLengths[source][$1]) }
  }

  mutating func append(_ pages: [Block]) throws -> [CID] {
    for page in pages { try sections.writer.append(page.cid, page.bytes.span) }
    return pages.map(\.cid)
  }
}

extension [BlobLedger.Missing] {
  /// Says of blobs that they were lost.
  fileprivate mutating func note(lost: [(cid: CID, size: Int?)], areReferenced: Bool) {
    let places = Dictionary(zip(map(\.cid), indices), uniquingKeysWith: { first, _ in first })
    for (cid, size) in lost {
      if let place = places[cid] {
        self[place].reason = .lost
      } else {
        var entry = BlobLedger.Missing(cid: cid, reason: .lost, size: size)
        entry.isReferenced = areReferenced
        append(entry)
      }
    }
  }
}
