internal import ATProtocol
internal import Archive
internal import IPLD

/// Orders of snapshots as ordinals of their archive.
///
/// Recent ones are kept. Up to 31 orders are relative to one another. Snapshots that are visited
/// along the chain, from either end, take one step each this way.
package struct ResolvedOrders {
  package init() {}

  /// An order, and how many others it is relative to, one upon the other.
  package struct Resolved {
    package let order: BlockOrder
    let depth: Int
    fileprivate let did: DID
  }

  /// The most runs that are kept: 32 MiB.
  static let maximumRuns = 1 << 21

  private var known: [CID: Resolved] = [:]
  private var runCount = 0

  /// The order of a snapshot.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if a block of it is damaged.
  package mutating func order(of archived: ArchivedSnapshot) throws -> Resolved {
    if let cid = archived.cid, let found = known[cid] { return found }
    let reader = archived.reader
    let end = reader.sectionCount
    // Each is relative to the next.
    var chain = [archived]
    var base: Resolved?
    while base == nil, let next = chain[chain.count - 1].snapshot.car.base {
      guard chain.count <= BlockOrder.maximumDepth, next.first <= end else {
        throw SnapshotError.malformedOrder
      }
      base = known[next.manifest]
      if base == nil { chain.append(try ArchivedSnapshot(next.manifest, in: reader)) }
    }
    if base == nil {
      let absolute = chain.removeLast()
      base = try keep(Self.absolute(absolute, limit: end), of: absolute)
    }
    guard var resolved = base else { throw SnapshotError.malformedOrder }
    for snapshot in chain.reversed() {
      resolved = try keep(Self.relative(snapshot, to: resolved, end: end), of: snapshot)
    }
    return resolved
  }

  private static func absolute(_ archived: ArchivedSnapshot, limit: UInt64) throws -> Resolved {
    let order = try archived.writtenOrder(limit: limit)
    return Resolved(order: order, depth: 0, did: archived.snapshot.did)
  }

  private static func relative(
    _ archived: ArchivedSnapshot, to base: Resolved, end: UInt64
  ) throws -> Resolved {
    guard let first = archived.snapshot.car.base?.first, base.did == archived.snapshot.did,
      base.depth < BlockOrder.maximumDepth
    else { throw SnapshotError.malformedOrder }
    let order = try archived.writtenOrder(limit: base.order.count.addingSaturated(end - first))
    return Resolved(
      order: try order.resolved(
        over: base.order, first: first, maximumRuns: archived.reader.maximumRuns),
      depth: base.depth + 1, did: base.did)
  }

  private mutating func keep(_ resolved: Resolved, of archived: ArchivedSnapshot) -> Resolved {
    let count = resolved.order.runs.count + 8
    guard let cid = archived.cid, count <= Self.maximumRuns else { return resolved }
    if runCount + count > Self.maximumRuns { (known, runCount) = ([:], 0) }
    known[cid] = resolved
    runCount += count
    return resolved
  }
}
