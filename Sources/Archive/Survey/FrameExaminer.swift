internal import IPLD

/// Examines data frames, one at a time, on whichever thread: form, checksums, and the hash of every
/// section.
struct FrameExaminer: Sendable {
  /// How closely frames are looked at.
  enum Depth: Sendable {
    /// The XXH64 of the stored bytes, to be compared with a frame table.
    case stored
    /// Everything.
    case full
  }

  let decoder: FrameDecoder
  let depth: Depth
  /// Is given the sections that were found.
  var intake: FrameIntake?

  /// Examines frame 0, which holds the CAR header and can be written in one way only.
  func examineHeader(_ frame: DataFrame, in file: Span<UInt8>) -> ArchiveError? {
    guard frame.isRaw, RawFrame.checksumHolds(of: frame, in: file),
      RawFrame.isCanonical(frame, in: file)
    else { return ArchiveError(.damagedFrame("it holds the CAR header"), offset: 0) }
    let content = RawFrame.content(of: frame, in: file)
    var offset = 0
    guard case .value(let length) = Varint.read(content.span, at: &offset), length > 0,
      length == UInt64(content.count - offset), length <= UInt64(ArchiveLimits.carHeader)
    else { return ArchiveError(.malformedHeader, offset: 0) }
    return nil
  }

  /// Examines a frame that holds whole sections, or a large one that has no other.
  func examine(_ frame: DataFrame, in file: Span<UInt8>) -> FrameReport {
    var report = FrameReport()
    checkForm(frame, in: file, &report)
    guard depth == .full else { return report }
    guard report.failure == nil else {
      salvage(frame, in: file, &report)
      return report
    }
    do throws(ArchiveError) {
      if frame.isRaw {
        let beginning = RawFrame.content(of: frame, in: file, limit: ArchiveLimits.sectionPrefix)
        let prefix = try SectionPrefix(beginning.span, at: 0, place: UInt64(frame.offset))
        if prefix.isLarge {
          try examineLarge(frame, prefix, in: file, &report)
          return report
        }
      }
      let content = try decoder.content(of: frame, in: file)
      try examineSections(content, frame, &report)
    } catch {
      report.keys = []
      report.unproved = []
      report.damaged = []
      report.unverifiable = []
      report.delivery = nil
      report.failure = error
      salvage(frame, in: file, &report)
    }
    return report
  }

  /// Examines what can be told of one frame of a section that has several.
  func examinePart(_ frame: DataFrame, in file: Span<UInt8>) -> FrameReport {
    var report = FrameReport()
    checkForm(frame, in: file, &report)
    return report
  }

  private func checkForm(
    _ frame: DataFrame, in file: Span<UInt8>, _ report: inout FrameReport
  ) {
    let place = UInt64(frame.offset)
    let stored = file.extracting(frame.range)
    report.checksum = XXH64.hash(stored)
    guard depth == .full else { return }
    if frame.isRaw {
      guard RawFrame.checksumHolds(of: frame, in: file) else {
        report.failure = ArchiveError(
          .damagedFrame("the checksum of its content does not hold"), offset: place)
        return
      }
      if !RawFrame.isCanonical(frame, in: file) {
        report.flaws.append(
          ArchiveError(
            .malformedFrame("it is raw, and not in the form of a raw frame"), offset: place))
      }
    } else if ArchiveMagic.next(in: stored) != nil {
      report.flaws.append(
        ArchiveError(.malformedFrame("it contains the magic"), offset: place))
    }
  }

  private func examineLarge(
    _ frame: DataFrame, _ prefix: SectionPrefix, in file: Span<UInt8>,
    _ report: inout FrameReport
  ) throws(ArchiveError) {
    guard UInt64(frame.contentSize) == prefix.sectionLength else {
      throw ArchiveError(
        .malformedSection("it does not end with its frame"), offset: UInt64(frame.offset))
    }
    var hash = BodyHash(prefix.cid)
    Self.update(&hash, with: frame, prefix.length, in: file)
    let verification = hash.finish()
    note(verification, prefix.cid, &report)
    report.keys = [SectionKey(prefix.cid).prefix]
    report.delivery = delivery(ofLarge: prefix)
    guard verification == .matches, prefix.cid.codec == .dagCBOR else { return }
    let content = RawFrame.content(of: frame, in: file)
    report.manifest = ManifestShape(
      prefix.cid, content.span.extracting(droppingFirst: prefix.length))
  }

  /// Adds the content of a raw frame, less its first `skipped` bytes, from where it lies.
  static func update(
    _ hash: inout BodyHash, with frame: DataFrame, _ skipped: Int, in file: Span<UInt8>
  ) {
    var skipped = skipped
    RawFrame.forEachBlock(of: frame, in: file) { block in
      let part = block.dropFirst(skipped)
      skipped -= block.count - part.count
      hash.update(file.extracting(part))
    }
  }

  private func examineSections(
    _ content: [UInt8], _ frame: DataFrame, _ report: inout FrameReport
  ) throws(ArchiveError) {
    let place = UInt64(frame.offset)
    let decoded = try DecodedFrame(content, firstOrdinal: 0, place: place)
    if let large = decoded.large, large.sectionLength != UInt64(content.count) {
      throw ArchiveError(.malformedSection("it does not end with its frame"), offset: place)
    }
    report.keys.reserveCapacity(decoded.count)
    var cids: [CID] = []
    var bodies: [Range<Int>] = []
    cids.reserveCapacity(decoded.count)
    bodies.reserveCapacity(decoded.count)
    for index in 0..<decoded.count {
      let range = decoded.range(index)
      let prefix = try decoded.prefix(index)
      guard large(decoded) || !prefix.isLarge else {
        throw ArchiveError(.malformedSection("a large one shares its frame"), offset: place)
      }
      cids.append(prefix.cid)
      bodies.append(range.lowerBound + prefix.length..<range.upperBound)
    }
    let bytes = content.span
    let digests = SHA256.digests(of: bodies, in: bytes)
    for (index, cid) in cids.enumerated() {
      let body = bytes.extracting(bodies[index])
      let verification = cid.verify(body, hashedTo: digests[index])
      note(verification, cid, &report)
      report.keys.append(SectionKey(cid).prefix)
      if cids.count == 1, verification == .matches { report.manifest = ManifestShape(cid, body) }
    }
    report.delivery = intake?.read(
      FrameIntake.Sections(
        content: content, cids: cids, bodies: bodies, bodyLengths: bodies.map { UInt64($0.count) }))
  }

  /// What is done with a section that has frames of its own.
  func delivery(ofLarge prefix: SectionPrefix) -> FrameIntake.Delivery? {
    intake?.read(
      FrameIntake.Sections(
        content: [], cids: [prefix.cid], bodies: [0..<0], bodyLengths: [prefix.bodyLength]))
  }

  private func large(_ frame: DecodedFrame) -> Bool { frame.large != nil }

  private func note(
    _ verification: Multihash.Verification, _ cid: CID, _ report: inout FrameReport
  ) {
    if verification != .matches { report.unproved.append(report.keys.count) }
    switch verification {
    case .matches: break
    case .mismatch: report.damaged.append(cid)
    case .cannotVerify: report.unverifiable.append(cid)
    }
  }

  /// Keeps those sections of a damaged frame that still hash to their CIDs.
  private func salvage(_ frame: DataFrame, in file: Span<UInt8>, _ report: inout FrameReport) {
    guard let failure = report.failure else { return }
    let content = decoder.salvage(frame, in: file)
    // Of a large section only its CID can be told, if that is not what is damaged.
    if let prefix = try? SectionPrefix(content.span, at: 0, place: UInt64(frame.offset)),
      prefix.isLarge, frame.contentSize == prefix.contentSize(ofFrame: 0)
    {
      report.damaged.append(prefix.cid)
      report.likelyCount = 1
      return
    }
    let decoded = DecodedFrame(
      salvaging: content, firstOrdinal: 0, place: UInt64(frame.offset), failure)
    let bytes = content.span
    if decoded.isComplete { report.likelyCount = decoded.count }
    for index in 0..<decoded.count {
      // Beyond the first prefix that cannot be read nothing can be told apart.
      guard let prefix = try? decoded.prefix(index) else { return }
      let range = decoded.range(index)
      let body = bytes.extracting(range.lowerBound + prefix.length..<range.upperBound)
      switch prefix.cid.verify(body) {
      case .matches:
        report.salvaged.append(.init(index: index, key: SectionKey(prefix.cid).prefix))
        if decoded.isComplete, decoded.count == 1 {
          report.manifest = ManifestShape(prefix.cid, body)
        }
      case .mismatch: report.damaged.append(prefix.cid)
      case .cannotVerify: report.unverifiable.append(prefix.cid)
      }
    }
  }
}
