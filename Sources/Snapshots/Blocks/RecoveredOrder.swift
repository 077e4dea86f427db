internal import Archive
internal import IPLD
package import Repository

/// Telling the order of a CAR's blocks where an archive has lost the ordinals of some.
///
/// A manifest names blocks by their ordinals, and damage can take away what tells which block an
/// ordinal was, though the block is there. The blocks that the commit leads to are known, and have
/// an order in the archive and a canonical one (FORMAT 6.1). Both are tried, first for the places of
/// the lost blocks in the order that the manifest lists, then alone. Behind damage, ordinals may be
/// too low, by as many sections as are lost there, or are given anew, behind all others: where the
/// commit is, which comes first in a CAR, tells by how many. The digest of the CAR tells which order
/// is right.
extension ArchivedSnapshot {
  /// The order that gives the CAR that came in; nil if none of those that are tried does.
  ///
  /// - Parameters:
  ///   - blocks: All blocks of the archive.
  ///   - listed: The order that the manifest lists; nil if it cannot be read.
  /// - Throws: `ArchiveError` if the archive cannot be read at all; ``BackupError`` if there is no
  ///   room for a temporary file.
  package func recoveredOrder(in blocks: LaidOutBlocks, _ listed: BlockOrder?) throws
    -> BlockOrder?
  {
    // An order may name as much as it likes; no section has fewer bytes than its length and CID.
    let car = snapshot.car
    guard car.sha256 != nil, car.sectionCount <= car.byteCount / Self.shortestSection,
      listed?.count ?? car.sectionCount == car.sectionCount
    else { return nil }
    let canonical = blocks.blocksInOrderOfTree(from: snapshot.commit)
    let orders = [canonical.sorted(), canonical]
    var listings = [listed].compactMap(\.self)
    if let listed, let first = listed.runs.first?.lowerBound,
      let commit = blocks.number(of: snapshot.commit).map(blocks.ordinal), first != commit
    {
      listings.append(
        first > commit
          ? listed.lowered(by: first - commit, from: reader.certainEnd)
          : listed.raised(by: commit - first, from: car.first ?? first))
    }
    let filled = listings.flatMap { listing in
      orders.map { blocks.filling(listing, from: $0) }
    }
    for order in filled + orders {
      guard UInt64(order.count) == car.sectionCount else { continue }
      var found = BlockOrder()
      for number in order { found.append(blocks.ordinal(number)) }
      if try unlessDamaged({ try isExact(found) }) == true { return found }
    }
    return nil
  }

  private static let shortestSection: UInt64 = 5

  /// Whether the sections of an order are the CAR that came in.
  private func isExact(_ order: BlockOrder) throws -> Bool {
    let digest = try CARDigest(of: snapshot.car)
    try reader.copyCAR(order.runs) { try digest.take($0) }
    return digest.isExact == true
  }
}

extension BlockOrder {
  /// The order with lower ordinals from a place on; those that have none there are nowhere.
  fileprivate func lowered(by shift: UInt64, from start: UInt64) -> BlockOrder {
    var lowered = BlockOrder()
    for run in runs {
      lowered.append(run.clamped(to: 0..<start))
      let lost = run.clamped(to: start..<start.addingSaturated(shift))
      let nowhere = UInt64.max - shift
      lowered.append(nowhere..<nowhere + lost.upperBound - lost.lowerBound)
      let rest = run.clamped(to: start.addingSaturated(shift)..<UInt64.max)
      if !rest.isEmpty { lowered.append(rest.lowerBound - shift..<rest.upperBound - shift) }
    }
    return lowered
  }

  /// The order with higher ordinals from a place on.
  fileprivate func raised(by shift: UInt64, from start: UInt64) -> BlockOrder {
    var raised = BlockOrder()
    for run in runs {
      raised.append(run.clamped(to: 0..<start))
      let rest = run.clamped(to: start..<UInt64.max)
      raised.append(rest.lowerBound.addingSaturated(shift)..<rest.upperBound.addingSaturated(shift))
    }
    return raised
  }
}

extension LaidOutBlocks {
  /// The blocks of an order, with those that it does not name in the places of the ones that are
  /// not here.
  ///
  /// - Parameter others: The numbers of blocks, in their order.
  fileprivate func filling(_ order: BlockOrder, from others: [Int]) -> [Int] {
    let named = blocks(in: order.runs)
    var others = others.filter { !named.contains($0) }[...]
    var filled: [Int] = []
    for run in order.runs {
      forEachPart(of: run) { part, isHere in
        if isHere {
          forEach(in: [part]) { filled.append($1) }
        } else {
          let count = Int(min(UInt64(others.count), part.upperBound - part.lowerBound))
          filled += others.prefix(count)
          others.removeFirst(count)
        }
      }
    }
    return filled
  }
}
