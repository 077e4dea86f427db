internal import IPLD

/// Making index segments and footers again.
extension ArchiveRepair {
  /// Makes again what lay in the gap, now that it is known what follows it; answers whether there is none any more.
  mutating func closeGap(before footer: Generation?, in file: Span<UInt8>) throws -> Bool {
    guard let gap else { return true }
    self.gap = nil
    if let footer {
      if try restoreSegment(named: footer, in: gap) { return true }
    } else if let segment, segment.frame.end == gap.lowerBound {
      if try restoreFooter(behind: segment.named, end: gap.lowerBound, length: gap.count, in: file)
      {
        return true
      }
    } else if try restoreBoth(in: gap, file) {
      return true
    }
    lose(
      ArchiveError(
        .damagedFrame("what lay here cannot be made again"), offset: UInt64(gap.lowerBound)))
    return false
  }

  /// Ends the file: what is there without a footer is given one if it is a whole generation, and cut off if it is not.
  mutating func finish(in file: Span<UInt8>) throws {
    guard !hasLost else { return }
    if !isTorn { try completeLast(in: file) }
    guard !hasLost else { return }
    guard let previous else {
      guard streamLength > 0 else { throw ArchiveError(.notAnArchive) }
      return lose(ArchiveError(.noFooter))
    }
    let size = try storage.size
    if size > previous.committedLength {
      report.bytesCutOff = size - previous.committedLength
      try storage.truncate(to: previous.committedLength)
    }
    if !report.isUnchanged { try storage.synchronize() }
  }

  /// Gives what is there without a footer one, if it is a whole generation.
  private mutating func completeLast(in file: Span<UInt8>) throws {
    let place = gap?.lowerBound ?? file.count
    // Where a footer was, a generation was committed, and is not cut off.
    let footer = gap.flatMap { gap in
      Footer.remains(in: file, from: gap.lowerBound, after: previous).first { $0.isNext }
    }
    if let gap, segment == nil, try footer != nil && restoreBoth(in: gap, file) {
      // All of it is there again.
    } else if let segment, segment.frame.end == place {
      _ = try restoreFooter(behind: segment.named, end: place, length: nil, in: file)
    } else if try manifest(in: file) != nil {
      let live = previous?.segments ?? []
      let kept = SegmentMerging.keptCount(
        live, newSections: keys.count - Int(live.last?.end ?? 0),
        newFrames: frames.count - committedFrames)
      try append(keeping: kept, at: place, in: file)
    } else if let footer {
      return lose(ArchiveError(.damagedFooter, offset: UInt64(footer.offset)))
    }
  }

  /// Makes the segment that a footer behind the gap names, if it lay there.
  private mutating func restoreSegment(named footer: Generation, in gap: Range<Int>) throws -> Bool
  {
    guard let named = footer.segments.last, named.offset == UInt64(gap.lowerBound),
      named.end == UInt64(keys.count), named.base <= UInt64(keys.count)
    else { return false }
    let made = try makeSegment(from: named.base, at: named.offset)
    guard made.bytes.count == gap.count, made.segment.checksum == named.checksum else {
      return false
    }
    try storage.write(made.bytes.span, at: named.offset)
    report.segments.append(named.offset)
    return true
  }

  /// Makes the footer behind a segment, if it is as long as it has to be.
  private mutating func restoreFooter(
    behind segment: Generation.Segment, end place: Int, length: Int?, in file: Span<UInt8>
  ) throws -> Bool {
    var live = previous?.segments ?? []
    while let last = live.last, last.end > segment.base { live.removeLast() }
    guard live.last?.end ?? 0 == segment.base, segment.end == UInt64(keys.count),
      live.count < ArchiveLimits.liveSegments,
      length == nil || length == Footer.length(segments: live.count + 1)
    else { return false }
    let generation = Generation(
      number: (previous?.number ?? 0) + 1, footerOffset: UInt64(place),
      previousFooterOffset: previous?.footerOffset,
      committedLength: UInt64(place + Footer.length(segments: live.count + 1)),
      sectionCount: UInt64(keys.count), streamLength: streamLength,
      head: try claimedHead(at: place, in: file) ?? manifest(in: file) ?? previous?.head,
      segments: live + [segment],
      minorVersion: previous?.minorVersion ?? Footer.minorVersion,
      features: previous?.features ?? FeatureFlags())
    // What the footer vouches for has to be there before it is.
    try storage.synchronize()
    let bytes = try Footer.encode(generation)
    try storage.write(bytes.span, at: UInt64(place))
    report.footers.append(UInt64(place))
    end(generation)
    return true
  }

  /// Makes a segment and a footer, if there are sections for them and together they are as long as the gap.
  private mutating func restoreBoth(in gap: Range<Int>, _ file: Span<UInt8>) throws -> Bool {
    guard frames.count > committedFrames else { return false }
    let live = previous?.segments ?? []
    for kept in (0...live.count).reversed() where kept < ArchiveLimits.liveSegments {
      let base = kept == 0 ? 0 : live[kept - 1].end
      let count = keys.count - Int(base)
      let length = IndexSegment.length(
        fanOutBits: IndexSegment.fanOutBits(count: count), count: count,
        frameCount: frames.count - firstFrame(from: base))
      guard length + Footer.length(segments: kept + 1) == gap.count else { continue }
      try append(keeping: kept, at: gap.lowerBound, in: file)
      return true
    }
    return false
  }

  /// Writes the segment of what the first `kept` live segments do not cover, and the footer behind it.
  private mutating func append(keeping kept: Int, at place: Int, in file: Span<UInt8>) throws {
    let base = kept == 0 ? 0 : previous?.segments[kept - 1].end ?? 0
    let made = try makeSegment(from: base, at: UInt64(place))
    try storage.write(made.bytes.span, at: UInt64(place))
    report.segments.append(UInt64(place))
    _ = try restoreFooter(
      behind: made.segment, end: place + made.bytes.count, length: nil, in: file)
  }

  private func makeSegment(from base: UInt64, at place: UInt64) throws
    -> (bytes: [UInt8], segment: Generation.Segment)
  {
    let frames = frames[firstFrame(from: base)...]
    let builder = IndexSegmentBuilder(
      base: base, keys: keys, range: Int(base)..<keys.count, frames: frames)
    var bytes: [UInt8] = []
    let checksum = try builder.encode { bytes.append($0) }
    let segment = Generation.Segment(
      offset: place, base: base, sectionCount: UInt32(builder.count),
      frameCount: UInt32(frames.count), checksum: checksum)
    return (bytes, segment)
  }

  private func firstFrame(from base: UInt64) -> Int {
    frames.firstIndex { $0.firstOrdinal >= base } ?? frames.count
  }

  /// The manifest that the remains of a footer name, if it is here.
  private func claimedHead(at place: Int, in file: Span<UInt8>) throws -> Generation.Head? {
    guard let claim = Footer.headClaim(in: file, at: place) else { return nil }
    let key = SectionKey(claim.cid).prefix
    let ordinals = (0..<keys.count).filter { keys[$0] == key }.map { UInt64($0) }
    for ordinal in [claim.ordinal] + ordinals {
      guard let frame = frames.last(where: { $0.firstOrdinal <= ordinal }),
        let (head, _) = loneManifest(frame, in: file), claim.means(head)
      else { continue }
      return head
    }
    return nil
  }

  /// The manifest that the last frame is, if it is one that no footer has named yet.
  private func manifest(in file: Span<UInt8>) throws -> Generation.Head? {
    guard frames.count > committedFrames, let last = frames.last,
      let (head, manifest) = loneManifest(last, in: file)
    else { return nil }
    guard previous == nil else { return manifest.previous == previous?.head?.cid ? head : nil }
    var trail = ManifestTrail()
    for frame in frames {
      guard let (found, manifest) = loneManifest(frame, in: file) else { continue }
      let isOnTrail = trail.take(manifest, found.cid)
      if found == head { return isOnTrail ? head : nil }
    }
    return nil
  }

  /// The manifest that is alone in a frame, if one is.
  private func loneManifest(_ entry: FrameEntry, in file: Span<UInt8>) -> (
    Generation.Head, ManifestShape
  )? {
    do throws(ArchiveError) {
      let frame = try DataFrame(file, at: Int(entry.offset), limit: file.count)
      let content = try FrameDecoder().content(of: frame, in: file)
      let decoded = try DecodedFrame(
        content, firstOrdinal: entry.firstOrdinal, place: entry.offset)
      guard decoded.count == 1, decoded.large == nil else { return nil }
      let prefix = try decoded.prefix(0)
      let body = content.span.extracting(droppingFirst: prefix.length)
      guard let manifest = ManifestShape(prefix.cid, body) else { return nil }
      let head = Generation.Head(
        cid: prefix.cid, ordinal: entry.firstOrdinal, frameOffset: entry.offset)
      return (head, manifest)
    } catch {
      // A part of a large section, which no manifest is.
      return nil
    }
  }
}

extension IndexSegment {
  /// The segment as a footer names it.
  fileprivate var named: Generation.Segment {
    Generation.Segment(
      offset: UInt64(frame.offset), base: base, sectionCount: UInt32(count),
      frameCount: UInt32(frameCount), checksum: frame.checksum)
  }
}
