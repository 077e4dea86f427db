package import ATProtocol
internal import Archive
package import IPLD

/// Orders of snapshots as ordinals of their archive.
///
/// Recent ones are kept. Up to 31 orders are relative to one another. Snapshots that are visited
/// along the chain, from either end, take one step each this way.
package struct ResolvedOrders {
  package init() {}

  /// An order, to which that of a later snapshot of the account may be relative.
  ///
  /// `depth` is how many others it is relative to, one upon the other; `manifest` is nil if there
  /// is none.
  package typealias Resolved = (order: BlockOrder, depth: Int, did: DID, manifest: CID?)

  /// The most runs that are kept: 32 MiB.
  static let maximumRuns = 1 << 21

  private var known: [CID: Resolved] = [:]
  private var runCount = 0

  /// The order of a snapshot.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if a block of it is damaged.
  package mutating func order(of archived: ArchivedSnapshot) throws -> Resolved {
    let reader = archived.reader
    let end = reader.sectionCount
    // Each is relative to the next.
    var (chain, next) = ([ArchivedSnapshot](), archived)
    var found = archived.cid.flatMap { known[$0] }
    while found == nil {
      guard let base = next.snapshot.car.base else {
        found = keep((try next.writtenOrder(limit: end), 0, next.snapshot.did, next.cid))
        break
      }
      guard chain.count < BlockOrder.maximumDepth else { throw SnapshotError.malformedOrder }
      chain.append(next)
      found = known[base]
      if found == nil { next = try ArchivedSnapshot(base, in: reader) }
    }
    guard var resolved = found else { throw SnapshotError.malformedOrder }
    for archived in chain.reversed() {
      guard let first = archived.snapshot.car.first, first <= end,
        resolved.did == archived.snapshot.did, resolved.depth < BlockOrder.maximumDepth
      else { throw SnapshotError.malformedOrder }
      let limit = resolved.order.count.addingSaturated(end - first)
      let order = try archived.writtenOrder(limit: limit).resolved(
        over: resolved.order, first: first, maximumRuns: reader.maximumRuns)
      resolved = keep((order, resolved.depth + 1, resolved.did, archived.cid))
    }
    return resolved
  }

  private mutating func keep(_ resolved: Resolved) -> Resolved {
    let count = resolved.order.runs.count + 8
    guard let cid = resolved.manifest, count <= Self.maximumRuns else { return resolved }
    if runCount + count > Self.maximumRuns { (known, runCount) = ([:], 0) }
    known[cid] = resolved
    runCount += count
    return resolved
  }
}
