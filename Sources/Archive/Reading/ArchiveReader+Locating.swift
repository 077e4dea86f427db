internal import IPLD
internal import Synchronization

/// Finding sections: through the index, which is never believed.
extension ArchiveReader {
  /// Calls `body` with the bytes that are committed.
  package func withFile<Value>(_ body: (Span<UInt8>) throws -> Value) throws -> Value {
    let length = Int(generation.committedLength)
    return try file.withBytes { (bytes) throws in try body(bytes.extracting(first: length)) }
  }

  /// The index as it is at the moment.
  var index: ArchiveIndex { state.withLock { $0.index } }

  func locate(_ cid: CID) throws -> SectionLocation? {
    try withFile { (file) throws in
      do throws(ArchiveError) {
        if let location = try locate(cid, index, in: file) { return location }
      } catch {
        guard try checkIndex(after: error, in: file) else { throw error }
        return try locate(cid, index, in: file)
      }
      guard try checkIndex(after: nil, in: file) else { return nil }
      return try locate(cid, index, in: file)
    }
  }

  func locate(_ ordinal: UInt64) throws -> SectionLocation {
    try withFile { (file) throws in
      do throws(ArchiveError) {
        return try locate(ordinal, index, in: file)
      } catch {
        guard ordinal < generation.sectionCount, try checkIndex(after: error, in: file) else {
          throw error
        }
        return try locate(ordinal, index, in: file)
      }
    }
  }

  /// Makes sure of the index when something was not found or not as it should be.
  ///
  /// - Throws: ``ArchiveError`` if the file is such that no index can be read from it.
  /// - Returns: Whether there is another index now, so that it is worth to look again.
  func checkIndex(after failure: ArchiveError?, in file: Span<UInt8>) throws -> Bool {
    let index = state.withLock { $0.isIndexChecked ? nil : $0.index }
    // Another thread may have just exchanged it; looking again then costs little.
    guard let index else { return false }
    let place: UInt64
    if let damaged = index.firstDamaged(in: file) {
      place = UInt64(damaged.frame.offset)
    } else if case .damagedIndex = failure?.reason {
      // Its checksums hold and what it says cannot be: made like that.
      place = failure?.offset ?? 0
    } else {
      state.withLock { $0.isIndexChecked = true }
      return false
    }
    let found = try IndexRebuilder.rebuild(self.file, limit: file.count)
    cache.removeAll()
    state.withLock { state in
      state.index = ArchiveIndex(found.index)
      state.isIndexChecked = true
      var recovery = state.recovery ?? Recovery()
      recovery.rebuild = .damagedIndex(offset: place)
      state.recovery = recovery
    }
    return true
  }

  func locate(_ cid: CID, _ index: ArchiveIndex, in file: Span<UInt8>)
    throws(ArchiveError) -> SectionLocation?
  {
    var failure: ArchiveError?
    for ordinal in try index.candidates(SectionKey(cid), in: file) {
      do throws(ArchiveError) {
        let location = try locate(ordinal, index, in: file)
        if location.prefix.cid == cid { return location }
      } catch {
        // Another section with the same key may be the one.
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
    return nil
  }

  private func locate(_ ordinal: UInt64, _ index: ArchiveIndex, in file: Span<UInt8>)
    throws(ArchiveError) -> SectionLocation
  {
    guard let position = index.position(of: ordinal, in: file) else {
      throw ArchiveError(.unknownOrdinal(ordinal))
    }
    let entry = index.entry(at: position, in: file)
    if let frame = cache.frame(at: entry.offset), frame.firstOrdinal == entry.firstOrdinal {
      return try location(of: ordinal, index, position, in: frame)
    }
    let decoded: DecodedFrame
    do throws(ArchiveError) {
      let frame = try load(entry, in: file)
      let beginning =
        frame.isRaw
        ? RawFrame.content(of: frame, in: file, limit: ArchiveLimits.sectionPrefix)
        : try decoder.content(of: frame, in: file)
      let prefix = try SectionPrefix(beginning.span, at: 0, place: entry.offset)
      if prefix.isLarge {
        guard entry.firstOrdinal == ordinal, frame.contentSize == prefix.contentSize(ofFrame: 0)
        else {
          throw ArchiveError(
            .damagedIndex("section \(ordinal) is not where it says"), offset: entry.offset)
        }
        return SectionLocation(
          ordinal: ordinal, prefix: prefix, index: index, position: position,
          body: .frames(first: frame, content: frame.isRaw ? nil : beginning))
      }
      let content = frame.isRaw ? RawFrame.content(of: frame, in: file) : beginning
      decoded = try DecodedFrame(
        content, firstOrdinal: entry.firstOrdinal, place: entry.offset)
    } catch {
      // Of a damaged pack, what still hashes to its CID is not lost.
      guard let left = salvage(entry, in: file), let number = left.index(of: ordinal) else {
        throw error
      }
      do throws(ArchiveError) {
        try check(left, number)
        let found = try location(of: ordinal, index, position, in: left)
        // A length that is wrong may have led past a section; then another would answer to this number.
        let key = SectionKey(found.prefix.cid)
        guard try index.candidates(key, in: file).contains(ordinal) else { throw error }
        return found
      } catch _ {
        throw error
      }
    }
    cache.insert(decoded)
    return try location(of: ordinal, index, position, in: decoded)
  }

  private func salvage(_ entry: FrameEntry, in file: Span<UInt8>) -> DecodedFrame? {
    guard entry.end <= UInt64(file.count) else { return nil }
    // If not even its blocks can be told apart, nothing can be had.
    guard
      let frame = try? DataFrame(file, at: Int(entry.offset), limit: Int(entry.end)),
      frame.contentSize <= ArchiveLimits.bodyPerFrame
    else { return nil }
    return DecodedFrame(
      salvaging: decoder.salvage(frame, in: file), firstOrdinal: entry.firstOrdinal,
      place: entry.offset)
  }

  private func location(
    of ordinal: UInt64, _ index: ArchiveIndex, _ position: ArchiveIndex.Position,
    in frame: DecodedFrame
  ) throws(ArchiveError) -> SectionLocation {
    guard let number = frame.index(of: ordinal) else {
      throw ArchiveError(
        .damagedIndex("section \(ordinal) is not where it says"), offset: frame.place)
    }
    return SectionLocation(
      ordinal: ordinal, prefix: try frame.prefix(number), index: index, position: position,
      body: .pack(frame, index: number))
  }

  /// The frame that a table entry describes, its stored bytes checked.
  func load(_ entry: FrameEntry, in file: Span<UInt8>) throws(ArchiveError) -> DataFrame {
    guard entry.end <= UInt64(file.count), entry.storedLength > 0 else {
      throw ArchiveError(.damagedIndex("a frame lies outside the file"), offset: entry.offset)
    }
    let range = Int(entry.offset)..<Int(entry.end)
    guard XXH64.hash(file.extracting(range)) == entry.checksum else {
      throw ArchiveError(.damagedFrame("its checksum does not hold"), offset: entry.offset)
    }
    let frame = try DataFrame(file, at: range.lowerBound, limit: range.upperBound)
    guard frame.end == range.upperBound else {
      throw ArchiveError(.damagedIndex("a frame has another length"), offset: entry.offset)
    }
    return frame
  }
}
