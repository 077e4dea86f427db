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
        .malformedFooter("\(count) footers make \(generation.number) generations"),
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
          // That its frame is damaged has been told.
          guard !brokenPlaces.contains(head.frameOffset) else { continue }
          throw ArchiveError(
            .malformedFooter("its manifest is not where it says"), offset: footer.footerOffset)
        }
        guard verification.isComplete else { continue }
        let frame = survey.frames[number]
        let entry = reader.index.row(of: head.ordinal, in: file)?.entry
        guard frame.holdsSections, frame.sectionCount == 1, entry?.offset == frame.offset,
          entry?.firstOrdinal == head.ordinal,
          try reader.intactCID(of: head.ordinal) == head.cid
        else {
          throw ArchiveError(
            .malformedFooter("its manifest is not where it says"), offset: footer.footerOffset)
        }
      } catch let error as ArchiveError {
        // What cannot be read of a footer has been told.
        if case .malformedFooter = error.reason { verification.note(error) }
      }
    }
  }
}
