internal import IPLD

/// Opening an archive that has begun, and taking over what an interrupted write has left in it.
///
/// Behind the last footer, frame by frame: a data frame is taken over if its form and checksum hold, each of its sections hashes
/// to its CID, and none is in the archive already; of a large section, if that is so of all its frames. Where an index segment
/// follows that is just the one this writer would write, only the footer is missing: the generation is given it, with the
/// manifest it ends in. So neither an interruption between index and footer nor a damaged footer costs a snapshot. A manifest
/// without an index behind it is not taken over, nor is anything from the first thing on that does not hold.
extension ArchiveWriter {
  /// Writes frame 0 of a new archive, or finds where one that has begun goes on.
  ///
  /// - Returns: Where the next frame goes, what is committed, and the file with its tail if there may be one.
  static func begin(_ storage: any ArchiveStorage, _ carHeader: [UInt8]) throws
    -> (log: FrameLog, committed: ArchiveReader?, file: MappedFile?)
  {
    guard try storage.size > 0 else {
      var stored: [UInt8] = []
      RawFrame.append(carHeader.span, to: &stored)
      var log = FrameLog(storage: storage, end: 0, streamLength: 0)
      try log.appendHeader(stored.span, contentSize: carHeader.count)
      return (log, nil, nil)
    }
    let file = try storage.map()
    guard try ArchiveReader.lastGeneration(of: file) != nil else {
      let header = try file.withBytes { (bytes) throws in
        try beginning(of: bytes, carHeader: carHeader)
      }
      let log = FrameLog(
        storage: storage, end: UInt64(header.end), streamLength: UInt64(header.contentSize))
      return (log, nil, file)
    }
    let reader = try ArchiveReader(file)
    var damage: UInt64?
    if case .damagedIndex(let offset)? = reader.recovery?.rebuild { damage = offset }
    if let segment = file.withBytes({ bytes in reader.index.firstDamaged(in: bytes) }) {
      damage = UInt64(segment.frame.offset)
    }
    if let damage {
      throw ArchiveError(.damagedIndex("nothing is appended to the archive"), offset: damage)
    }
    let log = FrameLog(
      storage: storage, end: reader.generation.committedLength,
      streamLength: reader.generation.streamLength)
    return (log, reader, file)
  }

  /// Empties a file that nothing can be appended to, or that is the archive of another repository.
  static func startOverIfNeeded(_ storage: any ArchiveStorage, _ carHeader: [UInt8]) throws {
    guard try storage.size > 0 else { return }
    let file = try storage.map()
    do {
      _ = try file.withBytes { (bytes) throws in try beginning(of: bytes, carHeader: carHeader) }
      _ = try begin(storage, carHeader)
    } catch let error as ArchiveError where !error.isOfSystem {
      try storage.truncate(to: 0)
    }
  }

  /// Frame 0 of an archive in which nothing is committed, if it holds this header.
  private static func beginning(of file: Span<UInt8>, carHeader: [UInt8]) throws(ArchiveError)
    -> DataFrame
  {
    let frame: DataFrame
    do {
      frame = try DataFrame(file, at: 0, limit: file.count)
    } catch {
      throw ArchiveError(.notAnArchive)
    }
    guard frame.isRaw, RawFrame.checksumHolds(of: frame, in: file),
      RawFrame.content(of: frame, in: file) == carHeader
    else { throw ArchiveError(.begunOtherwise) }
    return frame
  }

  /// Takes over what can be of what lies behind the end of the log, and cuts off the rest.
  mutating func adoptTail(of file: MappedFile) throws {
    let first = pending.nextOrdinal
    tail = (file, 0)
    defer { tail = nil }
    while log.end < UInt64(file.count) {
      let wentOn = try file.withBytes { (bytes) throws in try adoptNext(in: bytes) }
      guard wentOn else { break }
    }
    adoptedSectionCount = pending.nextOrdinal - first
    packs = PackQueue(firstOrdinal: pending.nextOrdinal, options: options)
    try refuseLoss(in: file)
    if try log.storage.size > log.end { try log.storage.truncate(to: log.end) }
  }

  /// Refuses to cut off what was committed once.
  ///
  /// All that a footer needs is on the medium before the first byte of it is, so an interrupted write never leaves a footer, or
  /// part of one, that could not be completed. Where there is one all the same, it and more were damaged later.
  private func refuseLoss(in file: MappedFile) throws(ArchiveError) {
    guard !options.startsOver, log.end < UInt64(file.count) else { return }
    let lost = file.withBytes { bytes in
      Footer.remains(in: bytes, from: Int(log.end), after: previous).first { $0.isNext }
    }
    if let lost { throw ArchiveError(.damagedFooter, offset: UInt64(lost.offset)) }
  }

  /// Takes over what begins at the end of the log, and answers whether it could.
  private mutating func adoptNext(in file: Span<UInt8>) throws -> Bool {
    do {
      switch file.firstWord(at: Int(log.end)) {
      case DataFrame.zstdMagic:
        return try adopt(DataFrame(file, at: Int(log.end), limit: file.count), in: file)
      case SkippableFrame.zstdMagic:
        guard let segment = segment(at: Int(log.end), in: file, end: pending.nextOrdinal) else {
          return false
        }
        return try complete(segment, head: previous?.head, in: file)
      default: return false
      }
    } catch let error as ArchiveError where !error.isOfSystem {
      // What cannot be read ends what can be taken over.
      return false
    }
  }

  private mutating func adopt(_ frame: DataFrame, in file: Span<UInt8>) throws -> Bool {
    guard isInForm(frame, in: file) else { return false }
    let place = UInt64(frame.offset)
    let beginning =
      frame.isRaw
      ? RawFrame.content(of: frame, in: file, limit: ArchiveLimits.sectionPrefix)
      : try decoder.content(of: frame, in: file)
    let first = try SectionPrefix(beginning.span, at: 0, place: place)
    guard !first.isLarge else { return try adoptLarge(first, from: frame, in: file) }
    let content = frame.isRaw ? RawFrame.content(of: frame, in: file) : beginning
    let decoded = try DecodedFrame(content, firstOrdinal: pending.nextOrdinal, place: place)
    var keys: [SectionKey] = []
    for index in 0..<decoded.count {
      let prefix = try decoded.prefix(index)
      let range = decoded.range(index)
      let body = content.span.extracting(range.lowerBound + prefix.length..<range.upperBound)
      let key = SectionKey(prefix.cid)
      guard !prefix.isLarge, prefix.cid.verify(body) == .matches,
        try existing(prefix.cid, key) == nil
      else { return false }
      keys.append(key)
    }
    let body = content.span.extracting(droppingFirst: first.length)
    if decoded.count == 1, let manifest = ManifestShape(first.cid, body),
      follows(manifest, first.cid)
    {
      // It counts if it is what an index follows. What a data frame follows is a record that looks like one.
      let next = pending.nextOrdinal + 1
      if let segment = segment(at: frame.end, in: file, end: next) {
        let head = Generation.Head(cid: first.cid, ordinal: next - 1, frameOffset: place)
        take(frame, in: file)
        pending.append(keys[0])
        return try complete(segment, head: head, in: file)
      }
      guard file.firstWord(at: frame.end) == DataFrame.zstdMagic else { return false }
    }
    take(frame, in: file)
    for key in keys { pending.append(key) }
    return true
  }

  /// Whether a manifest is one that the newest there is leads to.
  private mutating func follows(_ manifest: ManifestShape, _ cid: CID) -> Bool {
    previous == nil ? trail.take(manifest, cid) : manifest.previous == previous?.head?.cid
  }

  /// The manifest that the remains of a footer name, if it is here.
  private mutating func claimedHead(at place: Int, in file: Span<UInt8>) throws
    -> Generation.Head?
  {
    guard let claim = Footer.headClaim(in: file, at: place) else { return nil }
    for ordinal in [try ordinal(of: claim.cid), claim.ordinal].compactMap({ $0 }) {
      guard ordinal < pending.nextOrdinal, let place = frameOffset(of: ordinal, in: file) else {
        continue
      }
      let cid = try cid(at: ordinal)
      let head = Generation.Head(cid: cid, ordinal: ordinal, frameOffset: place)
      if claim.means(head) { return head }
    }
    return nil
  }

  private func frameOffset(of ordinal: UInt64, in file: Span<UInt8>) -> UInt64? {
    if let entry = log.frame(of: ordinal) { return entry.offset }
    guard let index = committed?.index, let position = index.position(of: ordinal, in: file) else {
      return nil
    }
    return index.entry(at: position, in: file).offset
  }

  /// The index segment that begins at `place`, if it holds and covers the ordinals up to `end`.
  private func segment(at place: Int, in file: Span<UInt8>, end: UInt64) -> IndexSegment? {
    // An error here says only that none begins at this place, which is the answer.
    guard let segment = try? IndexSegment(file, at: place), segment.end == end,
      segment.frame.holds(in: file)
    else { return nil }
    return segment
  }

  /// Gives a generation that is all there the footer it lacks.
  private mutating func complete(
    _ segment: IndexSegment, head: Generation.Head?, in file: Span<UInt8>
  ) throws -> Bool {
    var live = previous?.segments ?? []
    while let last = live.last, last.end > segment.base { live.removeLast() }
    guard pending.keys.count > indexed.keys, live.count < ArchiveLimits.liveSegments,
      mergedSegment(from: live.last?.end ?? 0)
        .isEncoded(in: file, at: segment.frame.offset, length: segment.frame.length)
    else { return false }
    live.append(
      Generation.Segment(
        offset: log.end, base: segment.base, sectionCount: UInt32(segment.count),
        frameCount: UInt32(segment.frameCount), checksum: segment.frame.checksum))
    log.adopt(segment.frame)
    let claimed = try claimedHead(at: Int(log.end), in: file)
    try log.storage.synchronize()
    try writeFooter(head: claimed ?? head, segments: live)
    return true
  }

  private mutating func adoptLarge(
    _ prefix: SectionPrefix, from first: DataFrame, in file: Span<UInt8>
  ) throws -> Bool {
    let key = SectionKey(prefix.cid)
    var frames = [first]
    var hash = BodyHash(prefix.cid)
    for number in 0..<prefix.frameCount {
      if number > 0 {
        frames.append(try DataFrame(file, at: frames[frames.count - 1].end, limit: file.count))
      }
      let frame = frames[Int(number)]
      guard frame.contentSize == prefix.contentSize(ofFrame: number), isInForm(frame, in: file)
      else { return false }
      let skipped = number == 0 ? prefix.length : 0
      if frame.isRaw {
        FrameExaminer.update(&hash, with: frame, skipped, in: file)
      } else {
        let content = try decoder.content(of: frame, in: file)
        hash.update(content.span.extracting(droppingFirst: skipped))
      }
      letGo(of: frame)
    }
    guard hash.finish() == .matches, try existing(prefix.cid, key) == nil else { return false }
    for frame in frames { take(frame, in: file) }
    pending.append(key)
    return true
  }

  /// Whether a frame has the one form that a writer gives it, and its content is what it was.
  private func isInForm(_ frame: DataFrame, in file: Span<UInt8>) -> Bool {
    guard frame.isRaw else {
      return ArchiveMagic.next(in: file.extracting(frame.range)) == nil
    }
    return RawFrame.checksumHolds(of: frame, in: file) && RawFrame.isCanonical(frame, in: file)
  }

  private mutating func take(_ frame: DataFrame, in file: Span<UInt8>) {
    log.adopt(
      FrameEntry(
        offset: UInt64(frame.offset), checksum: XXH64.hash(file.extracting(frame.range)),
        firstOrdinal: pending.nextOrdinal, storedLength: UInt32(frame.length)),
      contentSize: frame.contentSize)
    letGo(of: frame)
  }

  /// Lets go of the pages of the file now and then, so that not all of a long tail is in the process.
  private mutating func letGo(of frame: DataFrame) {
    guard let (file, length) = tail else { return }
    let isMuch = length + frame.length >= Self.maximumMapped
    if isMuch { file.releasePages() }
    tail = (file, isMuch ? 0 : length + frame.length)
  }

  /// How many bytes of a tail are looked at before their pages are let go of.
  private static let maximumMapped = 4 << 20
}
