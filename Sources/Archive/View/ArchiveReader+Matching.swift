package import IPLD
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
  ///   - expectedLength: How long the body of the section with a number should be; nil if that is
  ///     not known. Of an archive that lies elsewhere, a large section of which nothing is to be
  ///     checked is not fetched if the index and its frames' lengths agree with that.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: The state of each.
  package func states(
    _ count: Int, isChecking: Bool = false, workers: Int? = nil,
    expectedLength: @escaping @Sendable (Int) -> UInt64? = { _ in nil },
    cid: @escaping @Sendable (Int) -> CID
  ) throws -> [SectionState] {
    let states = Mutex([SectionState](repeating: .missing, count: count))
    let asked = Asked(cid: cid, length: expectedLength, isChecking: isChecking)
    _ = try ordinals(count, workers: workers, asked) { found in
      states.withLock { states in
        for (index, state) in found { states[index] = state }
      }
    }
    return states.withLock { $0 }
  }

  /// Whether the index has the key of a CID: if not, the archive does not have it either.
  ///
  /// The key of another section is taken for it once in 2^28 times, at the most, for each section.
  ///
  /// - Throws: ``ArchiveError`` if the index cannot be read.
  package func mayHold(_ cid: CID) throws -> Bool {
    try withFile { (file) throws in
      try !index.candidates(SectionKey(cid), in: file).isEmpty
    }
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
  package func ordinals(
    _ count: Int, workers: Int? = nil, cid: @escaping @Sendable (Int) -> CID
  ) throws -> [UInt64] {
    let asked = Asked(cid: cid, length: { _ in nil }, isChecking: false)
    return try ordinals(count, workers: workers, asked) { _ in }
  }

  /// What is asked about many sections.
  struct Asked {
    /// The CID with a number.
    let cid: @Sendable (Int) -> CID
    /// How long its body should be, if that is known.
    let length: @Sendable (Int) -> UInt64?
    /// Whether all frames of a section have to hold.
    let isChecking: Bool
  }

  typealias Found = [(index: Int, state: SectionState)]

  private func ordinals(
    _ count: Int, workers: Int?, _ asked: Asked, each: @Sendable (Found) -> Void
  ) throws -> [UInt64] {
    willSearch(index)
    let (cid, isChecking) = (asked.cid, asked.isChecking)
    let workers = workers ?? Parallel.processorCount
    let hints = try hints(count, workers: workers, cid: cid)
    var ordinals = hints.first
    let outcome = try confirm(hints, workers: workers, asked, each: each)
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
        let second = try confirm(others, workers: workers, asked) { _ in }
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
