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
    if let cid = archived.cid, let found = known[cid] { return found }
    let reader = archived.reader
    let end = reader.sectionCount
    // Each is relative to the next.
    var chain = [archived]
    var base: Resolved?
    while base == nil, let next = chain[chain.count - 1].snapshot.car.base {
      let first = chain[chain.count - 1].snapshot.car.first ?? .max
      guard chain.count <= BlockOrder.maximumDepth, first <= end else {
        throw SnapshotError.malformedOrder
      }
      base = known[next]
      if base == nil { chain.append(try ArchivedSnapshot(next, in: reader)) }
    }
    if base == nil {
      let absolute = chain.removeLast()
      base = try keep(Self.absolute(absolute, limit: end))
    }
    guard var resolved = base else { throw SnapshotError.malformedOrder }
    for snapshot in chain.reversed() {
      resolved = try keep(Self.relative(snapshot, to: resolved, end: end))
    }
    return resolved
  }

  private static func absolute(_ archived: ArchivedSnapshot, limit: UInt64) throws -> Resolved {
    (try archived.writtenOrder(limit: limit), 0, archived.snapshot.did, archived.cid)
  }

  private static func relative(
    _ archived: ArchivedSnapshot, to base: Resolved, end: UInt64
  ) throws -> Resolved {
    guard let first = archived.snapshot.car.first, base.did == archived.snapshot.did,
      base.depth < BlockOrder.maximumDepth
    else { throw SnapshotError.malformedOrder }
    let written = try archived.writtenOrder(limit: base.order.count.addingSaturated(end - first))
    let order = try written.resolved(
      over: base.order, first: first, maximumRuns: archived.reader.maximumRuns)
    return (order, base.depth + 1, base.did, archived.cid)
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
