/// What the footers say, compared with the frames.
extension SurveyAudit {
  mutating func checkFooters(in file: Span<UInt8>) {
    // What lies before the last footer of a repaired file need not count.
    guard !isRepaired else { return }
    let isCounting =
      survey.isTiled && listed.count == survey.frames.count && verification.isComplete
    let (count, isBroken) = survey.checkFooters(before: end, isCounting: isCounting, in: file) {
      verification.note($0)
    }
    if !isBroken, count != generation.number {
      verification.note(
        .malformedFooter("it is number \(generation.number), but there are \(count) footers"),
        at: generation.footerOffset)
    }
  }

  /// Whether the manifests that footers name are where they say.
  mutating func checkHeads(in file: Span<UInt8>) throws {
    var checked: Generation.Head?
    for seen in survey.footers where seen.isInPlace && seen.frame.end <= end {
      // What lies before the last footer of a repaired file need not count.
      guard !isRepaired || seen.frame.end == end else { continue }
      do {
        let footer = try Footer.read(file, seen.frame)
        guard let head = footer.head, head != checked else { continue }
        checked = head
        guard let number = listed[head.frameOffset] else {
          // Damage of its frame has been reported.
          guard !brokenPlaces.contains(head.frameOffset) else { continue }
          throw ArchiveError(
            .malformedFooter("its manifest is not at the given place"), offset: footer.footerOffset)
        }
        guard verification.isComplete else { continue }
        let frame = survey.frames[number]
        let entry = reader.index.row(of: head.ordinal, in: file)?.entry
        guard frame.holdsSections, frame.sectionCount == 1, entry?.offset == frame.offset,
          entry?.firstOrdinal == head.ordinal,
          try reader.intactCID(of: head.ordinal) == head.cid
        else {
          throw ArchiveError(
            .malformedFooter("its manifest is not at the given place"), offset: footer.footerOffset)
        }
      } catch let error as ArchiveError {
        // The unreadable part of a footer has been reported.
        if case .malformedFooter = error.reason { verification.note(error) }
      }
    }
  }
}

/// What footers say, compared with the frames before them.
extension Survey {
  /// Checks the footers that stand where they were written.
  ///
  /// - Parameters:
  ///   - generation: What is committed before the survey begins; nil for a survey of the whole
  ///     file.
  ///   - end: Footers from here on are not checked.
  ///   - isCounting: Whether every frame was examined and holds, so that counts can be compared.
  ///   - file: The file.
  ///   - note: Called with what is wrong.
  /// - Returns: The number of the last generation if each footer ended one; and whether bytes that
  ///   are not a frame lie between them.
  func checkFooters(
    after generation: Generation? = nil, before end: Int, isCounting: Bool, in file: Span<UInt8>,
    _ note: (ArchiveError) -> Void
  ) -> (number: UInt64, isBroken: Bool) {
    var last = generation
    var number = generation?.number ?? 0
    var isBroken = false
    var frame = 0
    var sectionCount = firstOrdinal
    var streamLength = generation?.streamLength ?? UInt64(header?.frame.contentSize ?? 0)
    for (frameCount, landmark) in landmarks where landmark.range.lowerBound < end {
      while frame < frameCount {
        sectionCount += UInt64(frames[frame].sectionCount)
        streamLength += UInt64(frames[frame].contentSize)
        frame += 1
      }
      if case .gap = landmark { isBroken = true }
      guard case .footer(let seen) = landmark, seen.isInPlace else { continue }
      number += 1
      do throws(ArchiveError) {
        let footer = try Footer.read(file, seen.frame)
        let place = UInt64(seen.frame.offset)
        guard
          isBroken || footer.number == number && footer.previousFooterOffset == last?.footerOffset
        else {
          throw ArchiveError(
            .malformedFooter("it does not follow the one before it"), offset: place)
        }
        guard
          !isCounting || footer.sectionCount == sectionCount && footer.streamLength == streamLength
        else {
          throw ArchiveError(
            .malformedFooter(
              "it counts \(footer.sectionCount) sections in \(footer.streamLength) bytes, but there are "
                + "\(sectionCount) in \(streamLength)"), offset: place)
        }
        // The segments it names may be dead by now, and still have to be there.
        _ = try ArchiveIndex(footer, in: file)
        last = footer
      } catch {
        note(error)
      }
    }
    return (number, isBroken)
  }
}
