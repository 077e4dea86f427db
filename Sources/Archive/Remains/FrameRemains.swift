package import IPLD

/// What is left of the sections of a frame that does not hold (FORMAT 7.1).
///
/// 1. A section counts as found only if it hashes to its CID.
/// 2. Sections are told apart by their lengths as long as these lead from one to the next. Where one
///    does not, its end is looked for: it is where a later section begins, or where the content ends.
///    Where that finds nothing either, the next section is looked for by the first bytes of its CID.
/// 3. What is hashed in vain is bounded by a multiple of the content, however it was made.
package struct FrameRemains: Sendable {
  /// A section that can be told apart.
  package struct Section: Sendable {
    /// Its number among the sections of the frame; where the length of something before it is not
    /// known, as if that had been one section.
    package let number: Int
    /// The CID that stands in front of it.
    package let cid: CID
    /// Where its body lies in the content.
    package let body: Range<Int>
    /// Whether the body hashes to the CID.
    package let verification: Multihash.Verification
  }

  /// The content, as far as it could be read.
  package let content: [UInt8]
  /// The sections, in the order of the content.
  package private(set) var sections: [Section] = []
  /// How many sections there were; nil if that cannot be told.
  package private(set) var count: Int?
  /// Whether the content ends in a section that was cut off.
  let isCutOff: Bool

  /// Looks for sections.
  ///
  /// - Parameters:
  ///   - content: What could be read of the content.
  ///   - size: How much content there was; nil if that is not known.
  ///   - declared: How much there was by the frame's header; nil if that does not tell.
  init(_ content: [UInt8], size: Int?, declared: Int? = nil) {
    self.content = content
    var search = Search(content.span, end: size ?? content.count, declared: declared)
    search.run(content.span)
    (sections, isCutOff) = (search.sections, search.isCutOff)
    count = search.isCounted && search.number > 0 ? search.number : nil
  }

  /// How many bytes may have to be read and searched to find what is left in this many.
  static func cost(of length: Int) -> Int {
    4 * (min(length, DataFrame.longest) + FrameReading.maximumContent(ofBlocks: length))
  }

  /// The sections that hash to their CIDs.
  package var found: some Sequence<Section> {
    sections.lazy.filter { $0.verification == .matches }
  }

  /// How many sections hash to their CIDs.
  var foundCount: Int { sections.count { $0.verification == .matches } }

  /// Whether every section was found.
  var isWhole: Bool { count == foundCount }
}

extension FrameDecoder {
  /// What is left of the sections of a frame that does not hold, by the reading that finds most.
  ///
  /// - Parameters:
  ///   - range: Where the frame lies, as far as is known.
  ///   - file: The file.
  package func remains(of range: Range<Int>, in file: Span<UInt8>) -> FrameRemains {
    // An error here says only that its header does not tell how much content there was.
    let header = try? DataFrame.readHeader(file, at: range.lowerBound, limit: range.upperBound)
    var best: FrameRemains?
    for reading in FrameReading.readings(of: range, in: file) {
      // What the header says of its size may be wrong, too.
      var (sizes, isOfHeader): ([Int?], Bool) = ([nil], false)
      if case .compressed = reading, let header { sizes.insert(header.contentSize, at: 0) }
      for size in sizes {
        let content = content(by: reading, size: size, in: file)
        let end = if case .raw = reading { content.count } else { size }
        let remains = FrameRemains(content, size: end, declared: header?.contentSize)
        // Read in another way, it might look like what is in a blob.
        if remains.isWhole || remains.isCutOff { return remains }
        isOfHeader = isOfHeader || remains.foundCount > 0
        if remains.foundCount > best?.foundCount ?? -1 { best = remains }
      }
      // With its own header length a compressed frame gives something; with another it would not.
      if case .compressed = reading, header != nil, isOfHeader { break }
    }
    return best ?? FrameRemains([], size: 0)
  }
}

/// The search for sections in content that may be wrong anywhere.
private struct Search {
  /// Where the content ends, as far as is known.
  private let end: Int
  /// Where it ended by the frame's header, if it was cut off.
  private let cutEnd: Int?
  /// Where usual CIDs begin that are not links in a block: version 1, raw or DAG-CBOR, SHA-256.
  private let usualCIDs: [Int]
  /// How many bytes may still be hashed in vain: where a section may begin by its own length; and
  /// where one may end beyond the place where the next seems to begin.
  private var budgets: (claims: Int, ends: Int)
  /// Where the next section begins, and its number.
  private(set) var (place, number) = (0, 0)
  /// Whether the number is that of the frame.
  private(set) var isCounted = true
  /// Whether the search ended at a section that was cut off.
  private(set) var isCutOff = false
  private(set) var sections: [FrameRemains.Section] = []

  /// The longest `varint(length)` of a section that fits a frame.
  private static let longestVarint = 4
  /// How many bytes the usual CID takes.
  private static let cidLength = 36
  /// What stands in front of the CID of a link: tag 42, a byte string of 37 bytes, and a zero.
  private static let linkMark: [UInt8] = [0xd8, 0x2a, 0x58, 0x25, 0x00]
  /// How many sections must follow one another by their lengths to be believed.
  private static let plausibleDepth = 2

  init(_ content: Span<UInt8>, end: Int, declared: Int?) {
    self.end = min(end, content.count)
    cutEnd = declared.flatMap { $0 > content.count ? $0 : nil }
    budgets = (8 * content.count, 8 * content.count)
    var places: [Int] = []
    // 01 55 12 20 and 01 71 12 20.
    for word: UInt32 in [0x2012_5501, 0x2012_7101] {
      var start = 0
      while let place = content.place(of: word, from: start, before: content.count - 35) {
        let mark = max(0, place - Self.linkMark.count)..<place
        if !content.extracting(mark).equals(Self.linkMark.span) { places.append(place) }
        start = place + 4
      }
    }
    usualCIDs = places.sorted()
  }

  mutating func run(_ content: Span<UInt8>) {
    while place < content.count {
      let start = place
      // What looks like sections in a blob that was cut off are those of another archive.
      if isCutOff(at: start, in: content) {
        (isCounted, isCutOff) = (false, true)
        return
      }
      let claimed = claim(at: start, in: content)
      let isPlausible = claimed.map { self.isPlausible($0.body.upperBound, in: content) } ?? false
      var verification = Multihash.Verification.mismatch
      if let claimed, let cid = claimed.cid, isPlausible || budgets.claims >= 0 {
        verification = cid.verify(content.extracting(claimed.body))
        // Nothing but its length tells where one ends that cannot be verified.
        if verification == .matches || verification == .cannotVerify && isPlausible {
          note(cid, claimed.body, verification)
          continue
        }
        if !isPlausible { budgets.claims -= claimed.body.count }
      }
      if let place = usualCID(from: start), place <= start + 1 + Self.longestVarint,
        let found = section(at: place, in: content)
      {
        note(found.cid, found.body, .matches)
      } else if let claimed, isPlausible {
        // Its length is right, and something else is wrong.
        if let cid = claimed.cid {
          note(cid, claimed.body, .mismatch)
        } else {
          (place, number) = (claimed.body.upperBound, number + 1)
        }
      } else {
        isCounted = false
        guard let found = next(from: start + 1, in: content) else { return }
        number += 1
        note(found.cid, found.body, .matches)
      }
    }
    isCounted = isCounted && place == end
  }

  private mutating func note(
    _ cid: CID, _ body: Range<Int>, _ verification: Multihash.Verification
  ) {
    sections.append(
      FrameRemains.Section(number: number, cid: cid, body: body, verification: verification))
    (place, number) = (body.upperBound, number + 1)
  }

  /// The section at a place by its own length: its CID, if that is one, and where its body lies.
  private func claim(at start: Int, in content: Span<UInt8>) -> (cid: CID?, body: Range<Int>)? {
    var place = start
    guard case .value(let length) = Varint.read(content, at: &place), length > 0,
      length <= UInt64(content.count - place)
    else { return nil }
    let end = place + Int(length)
    // An error here says only that no CID is there.
    guard let cid = try? CID(content, at: &place), place <= end else { return (nil, end..<end) }
    return (cid, place..<end)
  }

  /// Whether a section begins at a place that went on in what was cut off.
  private func isCutOff(at start: Int, in content: Span<UInt8>) -> Bool {
    var place = start
    guard let cutEnd, case .value(let length) = Varint.read(content, at: &place),
      length > UInt64(content.count - place), length <= UInt64(cutEnd - place)
    else { return false }
    // An error here says only that no CID is there.
    return (try? CID(content, at: &place)) != nil
  }

  /// Whether the content ends at a place, or sections follow there.
  private func isPlausible(
    _ place: Int, depth: Int = Self.plausibleDepth, in content: Span<UInt8>
  ) -> Bool {
    if place == end { return true }
    guard depth > 0, let claimed = claim(at: place, in: content) else { return false }
    return claimed.cid != nil
      || isPlausible(claimed.body.upperBound, depth: depth - 1, in: content)
  }

  /// The first usual CID that begins at a place or later.
  private func usualCID(from start: Int) -> Int? {
    let index = usualCIDs.partitioningIndex { $0 >= start }
    return index < usualCIDs.count ? usualCIDs[index] : nil
  }

  /// The first section that begins at a place or later.
  private mutating func next(from start: Int, in content: Span<UInt8>)
    -> (cid: CID, body: Range<Int>)?
  {
    var start = start
    while budgets.claims >= 0, let place = usualCID(from: start) {
      for length in 1...Self.longestVarint where place - length >= self.place {
        guard let claimed = claim(at: place - length, in: content), let cid = claimed.cid,
          claimed.body.lowerBound == place + Self.cidLength
        else { continue }
        if cid.verify(content.extracting(claimed.body)) == .matches { return (cid, claimed.body) }
        budgets.claims -= claimed.body.count
      }
      if let found = section(at: place, in: content) { return found }
      start = place + 1
    }
    return nil
  }

  /// The section whose CID begins at a place, if its body ends where a later one begins, or where
  /// the content does.
  private mutating func section(at start: Int, in content: Span<UInt8>)
    -> (cid: CID, body: Range<Int>)?
  {
    var bodyStart = start
    // It begins as a CID does.
    guard let cid = try? CID(content, at: &bodyStart) else { return nil }
    func isBody(_ end: Int) -> Bool {
      end >= bodyStart && cid.verify(content.extracting(bodyStart..<end)) == .matches
    }
    var next = usualCID(from: bodyStart)
    // The length in front of the next one may be damaged, too.
    let nearest = next.map { next in (1...Self.longestVarint).map { next - $0 } } ?? [end]
    for end in nearest where isBody(end) { return (cid, bodyStart..<end) }
    var ends = [end]
    while next != nil {
      for end in ends {
        guard budgets.ends >= 0 else { return nil }
        if isBody(end) { return (cid, bodyStart..<end) }
        budgets.ends -= max(64, end - bodyStart)
      }
      next = next.flatMap { usualCID(from: $0 + 1) }
      ends = next.map { self.ends(before: $0, in: content) } ?? []
    }
    return nil
  }

  /// Where the section in front of one ends whose CID begins at a place.
  private func ends(before place: Int, in content: Span<UInt8>) -> [Int] {
    (1...Self.longestVarint).lazy.map { place - $0 }.filter { start in
      start >= 0
        && claim(at: start, in: content)?.body.lowerBound == place + Self.cidLength
    }
  }
}
