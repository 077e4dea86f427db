internal import IPLD

/// A parity group of which pages were found, wherever these lie now.
struct FoundParity {
  let group: ParityGroup
  /// Where pages begin that hold, by their numbers.
  var pages: [Int: Int] = [:]

  /// By how many bytes pages lie behind where they were written.
  var shifts: Set<Int> { Set(pages.map { $1 - Int(group.place(ofPage: $0)) }) }
}

extension FoundParity {
  /// The groups of a file that still count, in the order of what they protect.
  ///
  /// One counts no more if all that it protects is protected by later ones.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - maximumWork: How many bytes all groups together may protect and have; those that are
  ///     found when that is used up are left out.
  static func all(in file: Span<UInt8>, maximumWork: UInt64? = nil) -> [FoundParity] {
    var found: [ParityGroup: FoundParity] = [:]
    var place = 0
    while let magic = ArchiveMagic.next(in: file, from: place) {
      place = magic + ArchiveMagic.length
      // An error here says only that no page begins at this place.
      guard let frame = try? SkippableFrame(file, at: magic - 8),
        frame.kind == SkippableFrame.parityPage, frame.holds(in: file),
        let (group, number) = try? ParityGroup.page(frame, in: file)
      else { continue }
      place = frame.end
      found[group, default: FoundParity(group: group)].pages[number] = frame.offset
    }
    var budget = maximumWork ?? UInt64(file.count).multipliedSaturated(by: 8)
    var live: [FoundParity] = []
    var covered: [Range<UInt64>] = []
    for found in found.values.sorted(by: { $0.group.offset > $1.group.offset }) {
      let (range, work) = (
        found.group.range, found.group.footer.upperBound - found.group.range.lowerBound
      )
      if covered.contains(where: {
        $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound
      }) {
        continue
      }
      guard work <= budget else { break }
      budget -= work
      covered = (covered + [range]).merged()
      live.append(found)
    }
    return live.sorted { $0.group.range.lowerBound < $1.group.range.lowerBound }
  }

  /// The table of checksums, if enough pages are left.
  ///
  /// - Throws: ``ArchiveError`` if the library for it is not there.
  func table(in file: Span<UInt8>) throws(ArchiveError) -> [UInt64]? {
    let (count, length) = (group.pageCount, group.pagePayload)
    var payloads = [UInt8](repeating: 0, count: 2 * count * length)
    for (number, place) in pages {
      let start = place + ParityGroup.pageHeader
      payloads.replaceSubrange(
        number * length..<(number + 1) * length, with: file.array(start..<start + length))
    }
    let lost = (0..<2 * count).filter { pages[$0] == nil }
    var code = try ErasureCode(dataRows: count, parityRows: count)
    guard code.rebuild(&payloads, lost: lost, length: length) else { return nil }
    return (0..<group.sumCount).map { payloads.span.u64($0 * 8) ^ group.mask }
  }
}
