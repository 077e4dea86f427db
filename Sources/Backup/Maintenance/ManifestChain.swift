internal import ATProtocol
package import Archive
package import IPLD

/// The chain of manifests of an archive while it is written again without some of them.
///
/// Up to the first that is forgotten nothing changes. After it each is re-made, for each names the one before; its content stays what it was.
package struct ManifestChain {
  /// The newest manifest that is kept so far.
  package private(set) var head: CID?

  private let archive: IntactArchive
  private var hasForgotten = false
  /// The manifests that are kept, by what they were called before, and how many orders theirs is relative to.
  private var kept: [CID: (cid: CID, depth: Int)] = [:]
  /// Of each account the newest that is kept, as it was called before.
  private var newest: [DID: CID] = [:]

  package init(_ archive: IntactArchive) { self.archive = archive }

  /// Goes on without this snapshot.
  package mutating func forget(_ entry: SnapshotHistory.Entry) { hasForgotten = true }

  /// Goes on with this snapshot.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest or an order is damaged; what the writer throws.
  package mutating func keep(_ entry: SnapshotHistory.Entry, in writer: inout ArchiveWriter) throws
  {
    let reader = archive.reader
    let archived = try archive.reading { try ArchivedSnapshot(entry.cid, in: reader) }
    defer { newest[entry.did] = entry.cid }
    guard hasForgotten else {
      let base = archived.snapshot.car.base.flatMap { kept[$0.manifest] }
      let depth = try base.map { $0.depth + 1 } ?? archive.reading { try archived.orderDepth() }
      kept[entry.cid] = (entry.cid, depth)
      head = entry.cid
      return
    }
    var map = try archive.reading { try ManifestMap(archived) }
    var depth = 0
    if let base = archived.snapshot.car.base {
      if let moved = kept[base.manifest], moved.depth < BlockOrder.maximumDepth {
        depth = moved.depth + 1
        map.setOrder(
          archived.snapshot.car.order,
          base: Snapshot.OrderBase(manifest: moved.cid, first: base.first))
      } else {
        let written = try archive.reading { try archived.order().written(after: basis(entry.did)) }
        for page in written.pages { try writer.append(page.cid, page.bytes.span) }
        map.setOrder(written.order, base: written.base)
        depth = written.depth
      }
    }
    map.setPrevious(head)
    let block = try map.block()
    // Alone in its frame, as every manifest is.
    try writer.flush()
    try writer.append(block.cid, block.bytes.span)
    try writer.flush()
    kept[entry.cid] = (block.cid, depth)
    head = block.cid
  }

  /// What the order of the next snapshot of an account may be relative to.
  private func basis(_ did: DID) throws -> OrderBasis? {
    guard let old = newest[did], let new = kept[old] else { return nil }
    let reader = archive.reader
    return OrderBasis(manifest: new.cid, depth: new.depth) {
      try ArchivedSnapshot(old, in: reader).order()
    }
  }
}
