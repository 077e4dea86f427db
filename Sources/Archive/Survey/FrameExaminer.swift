internal import IPLD

/// Examines data frames, one at a time, on whichever thread: form, checksums, and the hash of every
/// section.
struct FrameExaminer: Sendable {
  let decoder: FrameDecoder
  let depth: Survey.Depth
  /// Is given the sections that were found.
  var intake: FrameIntake?

  /// Examines frame 0, which holds the CAR header and can be written in one way only.
  func examineHeader(_ frame: DataFrame, in file: Span<UInt8>) -> ArchiveError? {
    do throws(ArchiveError) {
      _ = try DataFrame.carHeader(in: file)
      return frame.isCanonicalRaw(in: file)
        ? nil : ArchiveError(.damagedFrame("it holds the CAR header"), offset: 0)
    } catch {
      return ArchiveError(error.reason, offset: 0)
    }
  }

  /// Examines a frame that holds whole sections, or a large one that has no other; or what can be
  /// told of one frame of a section that has several.
  func examine(_ frame: DataFrame, isPart: Bool, in file: Span<UInt8>) -> FrameReport {
    var report = FrameReport()
    checkForm(frame, in: file, &report)
    guard depth == .full, !isPart else { return report }
    guard report.failure == nil else { return report }
    do throws(ArchiveError) {
      let sections = try decoder.sections(of: frame, in: file)
      if let prefix = sections.large?.prefix {
        try examineLarge(frame, prefix, frame.isRaw ? nil : sections.bytes, in: file, &report)
      } else {
        try examineSections(sections, &report)
      }
    } catch {
      report = FrameReport(failure: error, flaw: report.flaw, checksum: report.checksum)
    }
    return report
  }

  private func checkForm(_ frame: DataFrame, in file: Span<UInt8>, _ report: inout FrameReport) {
    let place = UInt64(frame.offset)
    let stored = file.extracting(frame.range)
    report.checksum = XXH64.hash(stored)
    if frame.isTorn {
      report.failure = ArchiveError(.damagedFrame("it is incomplete"), offset: place)
    }
    guard depth == .full, !frame.isTorn else { return }
    if frame.isRaw, !frame.rawChecksumHolds(in: file) {
      report.failure = ArchiveError(
        .damagedFrame("the checksum of its content does not match"), offset: place)
    } else if frame.isRaw, !frame.isCanonicalRaw(in: file) {
      report.flaw = ArchiveError(
        .malformedFrame("it is raw, but not in the form of a raw frame"), offset: place)
    } else if !frame.isRaw, ArchiveMagic.next(in: stored) != nil {
      report.flaw = ArchiveError(.malformedFrame("it contains the magic"), offset: place)
    }
  }

  private func examineLarge(
    _ frame: DataFrame, _ prefix: SectionPrefix, _ content: [UInt8]?, in file: Span<UInt8>,
    _ report: inout FrameReport
  ) throws(ArchiveError) {
    guard UInt64(frame.contentSize) == prefix.sectionLength else {
      throw ArchiveError(.malformedSection("it does not end with its frame"), at: frame.offset)
    }
    var hash = BodyHash(prefix.cid)
    if let content {
      hash.update(content.span.extracting(droppingFirst: prefix.length))
    } else {
      frame.forEachBlock(droppingFirst: prefix.length, in: file) {
        hash.update(file.extracting($0))
      }
    }
    let verification = hash.finish()
    note(verification, prefix.cid, &report)
    report.delivery = delivery(ofLarge: prefix, content)
    guard verification == .matches, prefix.cid.codec == .dagCBOR else { return }
    let whole = content ?? frame.rawContent(in: file)
    report.manifest = ManifestShape(prefix.cid, whole.span.extracting(droppingFirst: prefix.length))
  }

  private func examineSections(
    _ decoded: DecodedFrame, _ report: inout FrameReport
  ) throws(ArchiveError) {
    let content = decoded.bytes
    report.keys.reserveCapacity(decoded.count)
    let sections = try decoded.verify(0..<decoded.count)
    for section in sections { note(section.verification, section.cid, &report) }
    if sections.count == 1, sections[0].verification == .matches {
      report.manifest = ManifestShape(sections[0].cid, content.span.extracting(sections[0].body))
    }
    report.delivery = intake?(
      FrameSections(
        content: content, cids: sections.map(\.cid), bodies: sections.map(\.body),
        bodyLengths: sections.map { UInt64($0.body.count) }))
  }

  /// What is done with a section that has frames of its own; its content may be here.
  func delivery(ofLarge prefix: SectionPrefix, _ content: [UInt8]? = nil)
    -> (@Sendable () throws -> Void)?
  {
    intake?(
      FrameSections(
        content: content ?? [], cids: [prefix.cid],
        bodies: [content.map { prefix.length..<$0.count } ?? 0..<0],
        bodyLengths: [prefix.bodyLength]))
  }

  private func note(
    _ verification: Multihash.Verification, _ cid: CID, _ report: inout FrameReport
  ) {
    report.keys.append(cid.sectionKey)
    switch verification {
    case .matches: break
    case .mismatch: report.damaged.append(cid)
    case .cannotVerify: report.unverifiable.append(cid)
    }
  }

  /// Adds to the report of a frame that does not hold what is left of its sections.
  ///
  /// - Parameters:
  ///   - range: Where the frame lies, as far as is known.
  ///   - isProven: Whether it may be a manifest: one that no other leads to proves nothing.
  func salvage(
    _ range: Range<Int>, in file: Span<UInt8>, isProven: Bool, _ report: inout FrameReport
  ) {
    guard depth == .full else { return }
    let remains = decoder.remains(of: range, in: file)
    let bytes = remains.content
    let content = bytes.span
    // Only the CID can be known of a section of which this is the first frame of several.
    if let prefix = try? SectionPrefix(content, at: 0, place: UInt64(range.lowerBound)),
      prefix.frameCount > 1, bytes.count >= prefix.contentSize(ofFrame: 0)
    {
      report.damaged.append(prefix.cid)
      report.likelyCount = 1
      return
    }
    report.likelyCount = remains.count ?? 0
    for section in remains.sections {
      switch section.verification {
      case .matches:
        report.salvaged.append((section.number, section.cid.sectionKey))
        if remains.count == 1, isProven {
          report.manifest = ManifestShape(section.cid, content.extracting(section.body))
        }
      case .mismatch: report.damaged.append(section.cid)
      case .cannotVerify: report.unverifiable.append(section.cid)
      }
    }
  }
}
