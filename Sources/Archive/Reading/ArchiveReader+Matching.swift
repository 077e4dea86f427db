public import IPLD
internal import Synchronization

/// Finding many sections at once.
extension ArchiveReader {
  /// How the archive stands with many CIDs.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - isChecking: Whether all frames of a section are compared with their checksums; without
  ///     it, of a large section, the beginning is read.
  ///   - workers: How many threads.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: The state of each.
  public func states(
    _ count: Int, isChecking: Bool = false, workers: Int? = nil, cid: @Sendable (Int) -> CID
  ) throws -> [SectionState] {
    let states = Mutex([SectionState](repeating: .missing, count: count))
    _ = try ordinals(count, isChecking: isChecking, workers: workers, cid: cid) { found in
      states.withLock { states in
        for (index, state) in found { states[index] = state }
      }
    }
    return states.withLock { $0 }
  }

  /// How the archive stands with a CID.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  func state(of cid: CID, isChecking: Bool) throws -> SectionState {
    do {
      guard let location = try locate(cid, isChecking: isChecking) else { return .missing }
      return .held(ordinal: location.ordinal, bodyLength: location.prefix.bodyLength)
    } catch let error as ArchiveError where !error.isOfSystem {
      return .damaged(error)
    }
  }

  /// Under which numbers the archive has many CIDs.
  ///
  /// The index is asked for each, and what it says is then confirmed in the order of the file, on
  /// all cores, so that every frame is decompressed once, whatever order the CIDs come in. Of a raw
  /// frame with a section of its own only the beginning is read. Memory is eight bytes a CID, and
  /// four for each that is there.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - workers: How many threads.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: For each CID its number; `UInt64.max` if it is not there, or damaged.
  public func ordinals(
    _ count: Int, workers: Int? = nil, cid: @Sendable (Int) -> CID
  ) throws -> [UInt64] {
    try ordinals(count, isChecking: false, workers: workers, cid: cid) { _ in }
  }

  typealias Found = [(index: Int, state: SectionState)]

  private func ordinals(
    _ count: Int, isChecking: Bool, workers: Int?, cid: @Sendable (Int) -> CID,
    each: @Sendable (Found) -> Void
  ) throws -> [UInt64] {
    let workers = workers ?? Parallel.processorCount
    let hints = try hints(count, workers: workers, cid: cid)
    var ordinals = hints.first
    let outcome = try confirm(hints, isChecking: isChecking, workers: workers, cid, each: each)
    for index in outcome.unconfirmed { ordinals[index] = .max }
    func settle(_ found: Found) {
      for case (let index, .held(let ordinal, _)) in found { ordinals[index] = ordinal }
      each(found)
    }
    settle(outcome.others)
    var unsettled = hints.crowded + outcome.failed
    if !outcome.missing.isEmpty {
      if try checkIndex(after: nil) {
        unsettled += outcome.missing
      } else {
        // Sections in the segment that was asked begin like these. They may be in another.
        let others = try otherHints(outcome.missing, behind: hints, cid)
        let second = try confirm(others, isChecking: isChecking, workers: workers, cid) { _ in }
        settle(second.others)
        unsettled += others.crowded + second.failed
      }
    }
    for index in unsettled {
      settle([(index, try state(of: cid(index), isChecking: isChecking))])
    }
    return ordinals
  }
}
