internal import IPLD

/// A parity group of which pages were found, wherever these lie now.
struct FoundParity {
  let group: ParityGroup
  /// Where pages begin that hold, by their numbers.
  var pages: [Int: Int] = [:]

  /// By how many bytes pages lie after where they were written.
  var shifts: Set<Int> { Set(pages.map { $1 - Int(group.place(ofPage: $0)) }) }
}

extension FoundParity {
  /// A group of whose pages those are found that hold where they were written.
  init(_ group: ParityGroup, in file: Span<UInt8>) {
    self.group = group
    for number in 0..<2 * group.pageCount {
      let place = Int(clamping: group.place(ofPage: number))
      // An error here says only that the page is not there.
      guard let frame = try? SkippableFrame(file, at: place),
        frame.kind == SkippableFrame.parityPage, frame.holds(in: file),
        let page = try? ParityGroup.page(frame, in: file), page == (group, number)
      else { continue }
      pages[number] = place
    }
  }

  /// How many times the bytes of a file its groups may have to be read.
  static let maximumWork: UInt64 = 8
  /// How many bytes are searched before the pages of the file are released.
  private static let searchedAtOnce = 16 << 20

  /// The groups of a file that still count, in the order of what they protect.
  ///
  /// One no longer counts if all that it protects is protected by later ones.
  ///
  /// What groups protect and have may be this many times the file; older ones are left out.
  static func all(in file: MappedFile) -> [FoundParity] {
    let found = every(in: file)
    var budget = UInt64(file.count).multipliedSaturated(by: maximumWork)
    var live: [FoundParity] = []
    var covered: [Range<UInt64>] = []
    for found in found.reversed() {
      let (range, end) = (found.group.range, found.group.footer.upperBound)
      let next = covered.partitioningIndex { $0.upperBound >= range.upperBound }
      if next < covered.count, covered[next].lowerBound <= range.lowerBound { continue }
      guard end - range.lowerBound <= budget else { break }
      budget -= end - range.lowerBound
      covered.join(
        range.lowerBound..<(range.upperBound == found.group.offset ? end : range.upperBound))
      live.append(found)
    }
    return live.sorted { $0.group.range.lowerBound < $1.group.range.lowerBound }
  }

  /// The groups of a file, also those that no longer count, in the order of their frames.
  static func every(in file: MappedFile) -> [FoundParity] {
    var found: [ParityGroup: FoundParity] = [:]
    var place = 0
    while place < file.count {
      let end = min(file.count, place + searchedAtOnce)
      let read = place..<min(file.count, end + ParityGroup.longestPage)
      place = file.withBytes(reading: [read]) { find(in: $0, from: place, to: end, &found) }
      file.releasePagesIfLarge()
    }
    return found.values.sorted { $0.group.offset < $1.group.offset }
  }

  /// Finds the pages that begin between two places, or shortly after; returns where to continue.
  private static func find(
    in file: Span<UInt8>, from start: Int, to end: Int, _ found: inout [ParityGroup: FoundParity]
  ) -> Int {
    var place = start
    let part = file.extracting(first: end + ArchiveMagic.length)
    while let magic = ArchiveMagic.next(in: part, from: place) {
      place = magic + ArchiveMagic.length
      // An error here says only that no page begins at this place.
      guard let frame = try? SkippableFrame(file, at: magic - 8),
        frame.kind == SkippableFrame.parityPage, frame.holds(in: file),
        let (group, number) = try? ParityGroup.page(frame, in: file)
      else { continue }
      place = frame.end
      // If there are copies, the one in its place counts.
      let own = Int(group.place(ofPage: number))
      if found[group]?.pages[number] == own { continue }
      found[group, default: FoundParity(group: group)].pages[number] = frame.offset
    }
    return max(place, end)
  }

  /// The table of checksums, if enough pages are left.
  ///
  /// - Throws: ``ArchiveError`` if the library for it is not installed.
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

extension [Range<UInt64>] {
  /// Adds a range to ranges that ascend and do not touch, and stay so.
  fileprivate mutating func join(_ range: Range<UInt64>) {
    let first = partitioningIndex { $0.upperBound >= range.lowerBound }
    let end = partitioningIndex { $0.lowerBound > range.upperBound }
    let met = self[first..<Swift.max(first, end)] + [range]
    let joined = met.reduce(range) {
      Swift.min($0.lowerBound, $1.lowerBound)..<Swift.max($0.upperBound, $1.upperBound)
    }
    replaceSubrange(first..<Swift.max(first, end), with: [joined])
  }
}
