package import IPLD

/// Commits appended sections: an index, a barrier, a footer, a barrier.
extension ArchiveWriter {
  /// Makes everything that was appended count: writes the index, waits until it is on the medium,
  /// writes the footer, waits again.
  ///
  /// - Parameter manifest: The newest manifest, which has to be the section appended last, or alone
  ///   in its frame; or nil to keep the one there is.
  /// - Throws: ``ArchiveError`` with the reason `commitUncertain` if the very last wait failed, so
  ///   that opening the file again has to tell; with another reason if the manifest cannot be one;
  ///   and what the storage throws. Except for the first, nothing is committed then.
  /// - Returns: What is committed now.
  @discardableResult
  package mutating func commit(manifest: CID?) throws -> Generation {
    try checkUsable()
    var head = previous?.head
    if let manifest {
      guard let ordinal = try ordinal(of: manifest) else {
        throw ArchiveError(.unknownManifest(manifest))
      }
      packs.isolateLast(ordinal)
      try flush()
      head = try newHead(manifest, ordinal)
    } else if isHealing, let old = head,
      let ordinal = try find(old.cid, among: pending.ordinals(old.cid.sectionKey))
    {
      // A manifest that was written again is where the footer has to point.
      head = try newHead(old.cid, ordinal)
    }
    try flush()
    // From here on an error leaves it open how much of this is in the file.
    hasFailed = true
    let segments = try writeIndex()
    try log.checkEnd()
    let generation = try log.commit(
      after: previous, sectionCount: pending.nextOrdinal, head: head, segments: segments,
      required: requiredFeatures | (isHealing ? FeatureFlags.repaired : 0),
      optional: options.optionalFeatures)
    previous = generation
    indexed = (pending.keys.count, log.frames.count)
    hasFailed = false
    let storage = log.storage
    try storage.note { old in
      guard old?.head != generation.head.map({ "\($0.cid)" }) else { return old }
      do {
        return try ArchiveReader(storage.map(), committed: generation).content(after: old)
      } catch {
        // What was committed counts without a note.
        return nil
      }
    }
    return generation
  }

  /// Has the next footer say what a reader has to know to read the file: bits of
  /// ``FeatureFlags/required``.
  package mutating func require(_ features: UInt64) { requiredFeatures |= features }

  /// Makes everything that was appended so far count, under the manifest there is: no more than
  /// what comes after it can be lost.
  ///
  /// Appending does this by itself whenever 64 MiB have been written since the last time.
  ///
  /// - Throws: as `commit(manifest:)` does.
  package mutating func checkpoint() throws {
    try checkUsable()
    guard pending.keys.count > indexed.keys else { return }
    try commit(manifest: nil)
  }

  mutating func checkpointIfDue() throws {
    let begin = previous?.committedLength ?? 0
    if log.end - begin >= options.checkpointLength { try checkpoint() }
  }

  /// Discards what was appended since the last commit or checkpoint, and truncates the file.
  ///
  /// After a commit that is uncertain nothing is changed. Nothing more is written then.
  ///
  /// - Throws: what the storage throws; what is left then is a tail that readers ignore.
  package mutating func abandon() throws {
    hasFailed = true
    guard !log.isUncertain else { return }
    try log.storage.truncate(to: max(previous?.committedLength ?? 0, damageEnd ?? 0))
  }

  /// Writes something, and gives up what was appended if that fails.
  ///
  /// - Throws: what `body` throws. A tail that cannot be cut off is one that readers ignore.
  package mutating func orAbandon<Value>(_ body: (inout ArchiveWriter) throws -> Value) throws
    -> Value
  {
    do {
      return try body(&self)
    } catch {
      do { try abandon() } catch _ {}
      throw error
    }
  }

  /// A manifest is alone in its frame, so that a reader of the footer has it with one request
  /// more.
  private func newHead(_ manifest: CID, _ ordinal: UInt64) throws -> Generation.Head {
    let place = ordinal < pending.base ? try committedPlace(of: ordinal) : pendingPlace(of: ordinal)
    guard let place else { throw ArchiveError(.manifestNotAlone(manifest)) }
    return Generation.Head(cid: manifest, ordinal: ordinal, frameOffset: place)
  }

  /// Where the frame of a section begins that was appended and is alone in it; nil if it is not.
  private func pendingPlace(of ordinal: UInt64) -> UInt64? {
    guard let frame = log.frames.first(where: { $0.firstOrdinal == ordinal }) else { return nil }
    let next = log.frames.first { $0.firstOrdinal > ordinal }?.firstOrdinal
    return next ?? pending.nextOrdinal == ordinal + 1 ? frame.offset : nil
  }

  /// The same of a section that was there: a manifest that an interrupted write had come to, if its
  /// generation was completed without it.
  private func committedPlace(of ordinal: UInt64) throws -> UInt64? {
    guard let committed, try committed.neighbours(of: ordinal) == ordinal..<ordinal + 1 else {
      return nil
    }
    return try committed.withFile { committed.index.row(of: ordinal, in: $0)?.entry.offset }
  }

  /// Writes the index of what is new, and returns the segments that are live now.
  private mutating func writeIndex() throws -> [Generation.Segment] {
    let live = previous?.segments ?? []
    guard pending.keys.count > indexed.keys else { return live }
    let (end, segments) = try log.appendIndex(
      to: live, newSections: pending.keys.count - indexed.keys,
      newFrames: log.frames.count - indexed.frames
    ) { base in
      let newer = max(base, pending.base)
      let firstFrame = log.frames.firstIndex { $0.firstOrdinal >= newer } ?? log.frames.count
      let builder = IndexSegmentBuilder(
        (previous?.features ?? .ofNewFile).indexForm, base: newer, keys: pending.keys,
        range: Int(newer - pending.base)..<pending.keys.count, frames: log.frames[firstFrame...])
      return builder.merged(
        with: committed?.index.segments, from: base, in: committed?.file)
    }
    log = end
    return segments
  }
}
