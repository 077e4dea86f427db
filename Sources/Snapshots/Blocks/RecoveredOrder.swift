internal import Archive
internal import Files
internal import IPLD
package import Repository

/// Recovers the order of a CAR's blocks where an archive has lost the ordinals of some.
///
/// A manifest names blocks by their ordinals, and damage can take away what tells which block an
/// ordinal was, though the block is there. The blocks that the commit leads to are known, and have
/// an order in the archive and a canonical one (FORMAT 6.1). Both are tried, first for the places
/// of the lost blocks in the order that the manifest lists, then alone. Behind damage, or after a
/// write that was torn, sections have other ordinals than they had, and mostly still follow one
/// another as they did. So the ordinals that are listed from there on are also taken to be those
/// that the rest of the blocks have now, the lowest for the lowest. Where another writer appended to
/// an earlier generation, the ordinals from that one's end on have all moved as far. The digest of
/// the CAR tells which order is right.
extension ArchivedSnapshot {
  /// The order that gives the CAR as it was received; nil if none of those that are tried does.
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
    var attempts: [[Int]] = []
    if let listed {
      attempts = orders.map { blocks.filling(listed, from: $0) }
      // Where two writers gave the same ordinals, some lead to blocks of another snapshot.
      let reached = Set(canonical)
      attempts += orders.map { blocks.filling(listed, from: $0, within: reached) }
      // A snapshot's own blocks begin with its commit, which comes first in a CAR.
      let commit = listed.runs.first?.lowerBound ?? 0
      for start in Set([reader.certainEnd, commit, 0]).subtracting([.max]).sorted(by: >) {
        attempts += blocks.shifting(listed, from: start, among: orders[0]).map { [$0] } ?? []
      }
    }
    if let listed {
      for moved in try moves(of: listed, in: blocks, Set(canonical)) {
        if try unlessDamaged({ try isExact(moved) }) == true { return moved }
      }
    }
    for order in attempts + orders {
      guard UInt64(order.count) == car.sectionCount else { continue }
      var found = BlockOrder()
      for number in order { found.append(blocks.ordinal(number)) }
      if try unlessDamaged({ try isExact(found) }) == true { return found }
    }
    return nil
  }

  private static let shortestSection: UInt64 = 5

  /// The orders that another writer may have meant, who appended to an earlier generation of the
  /// archive than the one before the snapshot's sections.
  ///
  /// All ordinals from the end of that generation on have moved by one distance. The commit shows
  /// which, and every ordinal leads to a block that the commit reaches.
  ///
  /// - Parameter reached: The blocks that the commit leads to.
  private func moves(of listed: BlockOrder, in blocks: LaidOutBlocks, _ reached: Set<Int>) throws
    -> [BlockOrder]
  {
    let places = try reader.ordinals(holding: snapshot.commit)
    let limit = reader.sectionLimit
    // Orders can be made for it that nearly fit in many places.
    var budget = Self.maximumLookups
    func isPart(_ ordinal: UInt64) -> Bool {
      budget -= 1
      guard ordinal < limit, budget > 0 else { return false }
      var found = false
      blocks.forEach(in: [ordinal..<ordinal + 1]) { found = reached.contains($1) }
      return found
    }
    var moves: [BlockOrder] = []
    for base in reader.generationEnds(limit: Self.maximumGenerations) {
      let new = listed.runs.map { $0.clamped(to: base..<UInt64.max) }.filter { !$0.isEmpty }
      guard let first = new.map(\.lowerBound).min(), let end = new.map(\.upperBound).max() else {
        continue
      }
      for place in places where place >= base {
        // Which of the ordinals is that of the commit shows in where they lead with it.
        for old in new.joined() where place != old && place - base >= old - first {
          guard budget > 0 else { return moves }
          func moved(_ ordinal: UInt64) -> UInt64 { ordinal &- old &+ place }
          guard moves.count < Self.maximumGenerations, isPart(moved(first)),
            isPart(moved(end - 1)), new.joined().allSatisfy({ isPart(moved($0)) })
          else { continue }
          var order = BlockOrder()
          for run in listed.runs {
            let (kept, rest) = (run.clamped(to: 0..<base), run.clamped(to: base..<UInt64.max))
            if !kept.isEmpty { order.append(kept) }
            if !rest.isEmpty {
              order.append(moved(rest.lowerBound)..<moved(rest.upperBound - 1) + 1)
            }
          }
          moves.append(order)
        }
      }
    }
    return moves
  }

  /// How many sections are looked up in all that is tried.
  private static let maximumLookups = 1 << 22
  /// How many generations are tried.
  private static let maximumGenerations = 64

  /// Whether an order names the commit: a manifest may describe one commit, and the CAR of another.
  func hasCommit(in order: BlockOrder) throws -> Bool {
    try reader.ordinals(holding: snapshot.commit).contains { ordinal in
      order.runs.contains { $0.contains(ordinal) }
    }
  }

  /// Whether the sections of an order are the CAR as it was received.
  private func isExact(_ order: BlockOrder) throws -> Bool {
    guard try hasCommit(in: order) else { return false }
    var digest = try CARDigest(of: snapshot.car)
    try reader.copyCAR(order.runs) { try digest.take($0) }
    do {
      try digest.finish()
      return true
    } catch BackupError.carNotExact {
      return false
    }
  }
}

extension LaidOutBlocks {
  /// The blocks of an order, with those that it does not name in the places of the ones that are
  /// not here.
  ///
  /// - Parameters:
  ///   - others: The numbers of blocks, in their order.
  ///   - wanted: The blocks that count as here; nil for all.
  fileprivate func filling(
    _ order: BlockOrder, from others: [Int], within wanted: Set<Int>? = nil
  ) -> [Int] {
    let named = blocks(in: order.runs)
    var others = others.filter { !named.contains($0) }[...]
    var filled: [Int] = []
    for run in order.runs {
      forEachPart(of: run) { part, isHere in
        if isHere {
          forEach(in: [part]) { _, number in
            if wanted?.contains(number) ?? true {
              filled.append(number)
            } else if let other = others.popFirst() {
              filled.append(other)
            }
          }
        } else {
          let count = Int(min(UInt64(others.count), part.upperBound - part.lowerBound))
          filled += others.prefix(count)
          others.removeFirst(count)
        }
      }
    }
    return filled
  }

  /// The blocks of an order whose ordinals have changed from one on; nil if those are not as many
  /// as are left.
  ///
  /// - Parameters:
  ///   - order: The order.
  ///   - start: The first ordinal that may have changed.
  ///   - all: The numbers of the blocks that it has to name, ascending.
  fileprivate func shifting(_ order: BlockOrder, from start: UInt64, among all: [Int]) -> [Int]? {
    let certain = blocks(in: order.runs.map { $0.clamped(to: 0..<start) })
    let others = all.filter { !certain.contains($0) }
    let changed = order.runs.map { $0.clamped(to: start..<UInt64.max) }.filter { !$0.isEmpty }
      .merged()
    let count = changed.reduce(0 as UInt64) { $0.addingSaturated($1.upperBound - $1.lowerBound) }
    guard count == UInt64(others.count) else { return nil }
    let firsts = changed.reduce(into: [0]) {
      $0.append($0[$0.count - 1] + Int($1.upperBound - $1.lowerBound))
    }
    var shifted: [Int] = []
    for run in order.runs {
      forEach(in: [run.clamped(to: 0..<start)]) { shifted.append($1) }
      let rest = run.clamped(to: start..<UInt64.max)
      guard !rest.isEmpty else { continue }
      let range = changed.partitioningIndex { $0.upperBound > rest.lowerBound }
      let first = firsts[range] + Int(rest.lowerBound - changed[range].lowerBound)
      shifted += others[first..<first + Int(rest.upperBound - rest.lowerBound)]
    }
    return shifted
  }
}
