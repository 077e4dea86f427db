internal import ATProtocol
internal import Archive
package import IPLD
internal import Repository
package import Snapshots

/// Describing what is left of a snapshot in a damaged archive.
extension SnapshotCopier {
  /// The sections of a CAR that were copied, and what else its commit leads to.
  ///
  /// An order that cannot be read is replaced by the canonical one. After damage, sections may have
  /// other ordinals in the file than the order names.
  ///
  /// - Parameter listed: the order; nil if it cannot be read.
  mutating func whatIsLeft(
    of archived: ArchivedSnapshot, _ listed: BlockOrder?, from source: Int
  ) throws -> CopiedCAR {
    let (car, commit) = (archived.snapshot.car, archived.snapshot.commit)
    var left = BlockOrder()
    for ordinal in (listed?.runs ?? []).joined() where sources[source][ordinal] != nil {
      left.append(ordinal)
    }
    if left == listed, archived.reader.certainEnd == .max, sources[source].has(car, at: left),
      sources[source].has(commit, at: left)
    {
      return (left, nil)
    }
    let blocks = sources[source].blocks
    let exact = try archived.recoveredOrder(in: blocks, listed)
    // If none is, those that are listed may be others, because nothing in the file told their
    // ordinals.
    if exact != nil || left == listed { left = BlockOrder() }
    let rest =
      exact.map { Array($0.runs.joined()) }
      ?? sources[source].reachable(from: commit, besides: left)
    for ordinal in rest {
      try copy([ordinal..<ordinal + 1], from: source, limit: .max)
      if sources[source][ordinal] != nil { left.append(ordinal) }
    }
    if left == exact { return (left, nil) }
    var hash = SHA256()
    var byteCount = UInt64(car.header.count)
    hash.update(car.header.span)
    try sources[source].archive.reader.copyCAR(left.runs) { bytes in
      hash.update(bytes)
      byteCount += UInt64(bytes.count)
    }
    return (left, (byteCount, hash.finish()))
  }

  /// Adds to a manifest what is left, and records what is lost.
  mutating func describe(_ new: inout SnapshotCopy) throws {
    if let left = new.car.left {
      (new.snapshot.car.byteCount, new.snapshot.car.sha256) = (left.byteCount, left.sha256)
      new.snapshot.car.sectionCount = new.car.order.count
      new.snapshot.counts.records = new.tree.recordCount
      new.snapshot.counts.nodes = new.tree.nodeCount
      new.snapshot.counts.blocks = sources[new.source].blocks.blocks(in: new.car.order.runs).count
      new.snapshot.isComplete = new.tree.isComplete
      if let remains = new.loss.remains {
        new.snapshot.remains = remains
        // How many blocks the records are was counted of all of them.
        new.snapshot.counts.recordBlocks = nil
      }
    }
    for document in new.loss.documents {
      if document == new.snapshot.didDocument { new.snapshot.didDocument = nil }
      if document == new.snapshot.plcLog { new.snapshot.plcLog = nil }
    }
    describeBlobs(of: &new)
    try describeExtras(of: &new)
    // A lost page takes what was accepted with it.
    if new.areReasonsLost || !new.loss.blobs.isEmpty { try list(of: &new) }
  }

  /// Recounts the blobs that records refer to, if some are lost.
  private func describeBlobs(of new: inout SnapshotCopy) {
    let source = sources[new.source]
    let known = source.trees.blobs.entries
    let explained = Set(new.missing.map(\.cid))
    var (held, lost, unexplained): ([Int], [Int], [Int]) = ([], [], [])
    for blob in new.tree.blobNumbers.map(\.self) {
      switch source.blobs[blob] {
      case .copied: held.append(blob)
      case .lost: lost.append(blob)
      case .absent, nil: if !explained.contains(known[blob].cid) { unexplained.append(blob) }
      }
    }
    let isComplete = new.tree.isComplete
    // An index that was rebuilt does not know what is lost; the figures of the manifest may.
    var further = new.snapshot.blobs.held - held.count - lost.count
    if new.archived.cid == nil {
      // No manifest says which of them were held; they are asked for again as those that were.
      lost += unexplained
    }
    if isComplete, further > 0, further == unexplained.count {
      lost += unexplained
      further = 0
    }
    new.loss.blobs = lost.map { known[$0].cid }
    new.loss.blobCount = lost.count + (isComplete ? max(further, 0) : 0)
    guard new.loss.blobCount > 0 || new.car.left != nil else { return }
    recount(held, of: &new)
    new.missing.note(lost: lost.map { (known[$0].cid, known[$0].size) }, areReferenced: true)
  }

  /// Lists the extras that are left, if some are lost.
  private mutating func describeExtras(of new: inout SnapshotCopy) throws {
    guard new.areExtrasLost || !new.lostExtras.isEmpty || !new.strays.isEmpty else { return }
    new.loss.blobCount += max(new.snapshot.blobs.extras - new.extras.count, 0)
    let extras = new.extras + new.strays
    new.snapshot.extrasPages = try append(BlobLedger.pages(extras: extras))
    new.snapshot.blobs.recount(isReferenced: false)
    new.snapshot.blobs.hold(extras.count, length(of: extras), isReferenced: false)
    new.snapshot.blobs.miss(new.lostExtras.count, isReferenced: false)
    new.loss.blobs += new.lostExtras
    new.missing.note(lost: new.lostExtras.map { ($0, nil) }, areReferenced: false)
  }
}

/// What salvage could not save of a snapshot.
package struct SnapshotLoss: Sendable {
  /// Why all of it is lost, if the commit or the root of the tree is; otherwise nil.
  package internal(set) var whole: String?
  /// Whether its CAR can be reproduced bit for bit.
  package internal(set) var isExact: Bool
  /// How many sections of the CAR are lost.
  package internal(set) var blockCount: UInt64
  /// The records that are lost and can be named, by their paths, as far as there is room for them.
  package internal(set) var records: [String] = []
  /// How many records are lost, those below lost tree nodes among them.
  package internal(set) var recordCount = 0
  /// What is left of records and references, if that is less than the manifest counts.
  package internal(set) var remains: Snapshot.Remains?
  /// The blobs and extras that were held and are lost, those that can be named.
  package internal(set) var blobs: [CID] = []
  /// How many blobs and extras that were held are lost.
  package internal(set) var blobCount = 0
  /// The documents about the account that are lost.
  package internal(set) var documents: [CID] = []

  /// The loss of a snapshot, by what is left of its CAR.
  init(of snapshot: Snapshot, _ car: CopiedCAR, _ tree: RepositoryInspection) {
    isExact = car.left == nil
    blockCount =
      isExact ? 0 : snapshot.car.sectionCount - min(car.order.count, snapshot.car.sectionCount)
    guard !isExact else { return }
    records = tree.missingRecords
    let before =
      snapshot.remains ?? Snapshot.Remains(snapshot.counts.records, snapshot.blobs.referenced)
    var left = before
    left.records = min(before.records, tree.recordCount - tree.missingRecordCount)
    left.references = min(before.references, tree.blobNumbers.count)
    recordCount = before.records - left.records
    if left != before { remains = left }
    switch tree.commitError {
    case .commitMissing(let commit): whole = "its commit \(commit) is lost"
    case let error?: whole = "\(error)"
    case nil:
      guard let root = tree.commit?.data, tree.missingNodes.first == root else {
        return
      }
      whole = "the root of its tree, \(root), is lost"
    }
  }

  /// Whether nothing is lost.
  package var isNone: Bool { isExact && blobCount == 0 && documents.isEmpty }
}
