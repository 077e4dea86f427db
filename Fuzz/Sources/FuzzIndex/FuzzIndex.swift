import FuzzSupport
import IPLD

@testable import Archive

/// Index segments: one is read or refused; what is looked up lies in it; one that is in order finds
/// exactly what it holds; and one that is built of keys finds each of them.
///
/// ```
/// offset 0  flags: bit 0, make it a frame whose numbers fit its length and whose checksum holds; bit 1, build one; bit 2, in
///           the wide form
///        1  fan-out bits, 2 number of frames, if the frame is made
///        3  the segment
/// ```
enum FuzzIndex: Fuzzer {
  /// How many keys a segment is built of: beyond 128 the fan-out has three bits, and more only take
  /// longer.
  private static let maximumKeys = 160

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count >= 3 else { return }
    let rest = bytes.extracting(droppingFirst: 3)
    let form = bytes[0] & 4 == 4 ? IndexForm.wide : .packed
    if bytes[0] & 2 == 2 {
      build(form, rest, frames: Int(bytes[2]) % 16 + 1)
      return
    }
    var file: [UInt8] = []
    file.append(rest)
    let isMade =
      bytes[0] & 1 == 1
      && makeFrame(form, &file, bits: Int(bytes[1]) % 11, frames: Int(bytes[2]) % 16)
    let segment: IndexSegment
    do throws(ArchiveError) {
      segment = try IndexSegment(file.span, at: 0)
    } catch {
      require(!error.description.isEmpty, "an error without words")
      return
    }
    require(
      !isMade || segment.frame.holds(in: file.span), "a checksum that was set does not hold")
    check(segment, in: file.span)
  }

  /// Writes the header and the checksum so that as many entries as there is room for are the
  /// segment's; answers whether there is room for any.
  private static func makeFrame(
    _ form: IndexForm, _ file: inout [UInt8], bits: Int, frames: Int
  ) -> Bool {
    func layout(_ count: Int) -> SegmentLayout {
      SegmentLayout(
        form, base: 0, count: count, frameCount: frames,
        fanOutBits: form == .wide ? bits : nil)
    }
    guard frames > 0, layout(1).length <= file.count else { return false }
    var (count, beyond) = (1, file.count + 1)
    while beyond - count > 1 {
      let middle = count + (beyond - count) / 2
      if layout(middle).length <= file.count { count = middle } else { beyond = middle }
    }
    let length = layout(count).length
    file.removeLast(file.count - length)
    let header =
      SkippableFrame.header(
        SkippableFrame.indexSegment, payloadLength: length - SkippableFrame.minimumLength) ?? []
    file.replaceSubrange(0..<header.count, with: header)
    file.set(UInt32(layout(count).fanOutBits) | UInt32(form.rawValue) << 8, at: 28)
    file.set(UInt64(0), at: 32)
    file.set(UInt32(count), at: 40)
    file.set(UInt32(frames), at: 44)
    file.set(XXH64.hash(file.span.extracting(0..<length - 8)), at: length - 8)
    return true
  }

  /// Looks up what is in the segment, and compares with looking through all of it.
  private static func check(_ segment: IndexSegment, in file: Span<UInt8>) {
    let layout = segment.layout
    var all: [IndexEntry] = []
    var entries = segment.entries
    do throws(ArchiveError) {
      while let entry = try entries.next(in: file) { all.append(entry) }
      require(all.count == segment.count, "other entries than it says")
    } catch {
      require(all.count < segment.count, "an entry too many")
    }
    // Only where the fan-out says what the entries say, a lookup finds all there is.
    var ends = [Int](repeating: 0, count: 1 << layout.fanOutBits)
    for entry in all { ends[entry.key.leading(layout.fanOutBits)] += 1 }
    for index in ends.indices.dropFirst() { ends[index] += ends[index - 1] }
    let isOrdered =
      all.count == segment.count && zip(all, all.dropFirst()).allSatisfy { $0.key <= $1.key }
      && all.allSatisfy {
        segment.form.kept($0.key, of: segment.base + UInt64($0.ordinal)) == $0.key
      }
      && ends.indices.allSatisfy {
        ends[$0] == Int(file.u32(SegmentLayout.fanOutOffset + 4 * $0))
      }
    for entry in all.prefix(32) {
      let found = try? segment.candidates(entry.key, in: file)
      for ordinal in found ?? [] {
        require(segment.base <= ordinal && ordinal < segment.end, "an ordinal outside")
      }
      guard isOrdered else { continue }
      let expected = all.map { (key: $0.key, ordinal: segment.base + UInt64($0.ordinal)) }.filter {
        ($0.key ^ entry.key).leadingZeroBitCount >= segment.form.keyBits(of: $0.ordinal)
      }
      require(found == expected.map(\.ordinal), "other entries are found")
    }
    for ordinal in [0, segment.base, segment.base + 1, segment.end - 1, segment.end, .max] {
      guard let number = segment.frameIndex(of: ordinal, in: file) else { continue }
      require(0 <= number && number < segment.frameCount, "a frame outside")
      let entry = segment.frameEntry(number, in: file)
      require(entry.end >= entry.offset, "a frame that ends before it begins")
    }
  }

  /// Builds a segment of keys, eight bytes each, and looks them all up.
  private static func build(_ form: IndexForm, _ bytes: Span<UInt8>, frames: Int) {
    var keys = KeyList()
    for number in 0..<min(bytes.count / 8, maximumKeys) { keys.append(bytes.u64(8 * number)) }
    guard keys.count > 0 else { return }
    let base: UInt64 = 1000
    let perFrame = (keys.count + frames - 1) / frames
    let table = stride(from: 0, to: keys.count, by: perFrame).map {
      FrameEntry(
        offset: UInt64($0), checksum: 0, firstOrdinal: base + UInt64($0), storedLength: 1)
    }
    let builder = IndexSegmentBuilder(form, base: base, keys: keys, frames: table[...])
    var file: [UInt8] = []
    let segment: IndexSegment
    do {
      try builder.encode { file.append($0) }
      segment = try IndexSegment(file.span, at: 0)
    } catch {
      fatalError("a segment that was built cannot be read: \(error)")
    }
    require(file.count == builder.length, "another length")
    require(segment.frame.holds(in: file.span), "its checksum does not hold")
    require(builder.isEncoded(in: file.span, at: 0, length: file.count), "not what was built")
    check(segment, in: file.span)
    for number in 0..<keys.count {
      let (key, ordinal) = (keys[number], base + UInt64(number))
      let found = (try? segment.candidates(key, in: file.span)) ?? []
      require(found.contains(ordinal), "a key is not found")
      require(
        segment.frameIndex(of: ordinal, in: file.span) == number / perFrame,
        "it lies in another frame")
    }
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    var seeds: [[UInt8]] = []
    for archive in try ArchiveSeeds.all() {
      guard let footer = Footer.frame(archive.span, endingAt: archive.count) else { continue }
      for named in try Footer.read(archive.span, footer).segments {
        let offset = Int(named.offset)
        let segment = try IndexSegment(archive.span, at: offset)
        let bytes = Array(archive[offset..<segment.frame.end])
        for flag in [0, 1] as [UInt8] {
          seeds.append(
            [flag, UInt8(segment.layout.fanOutBits), UInt8(segment.frameCount & 15)] + bytes)
        }
      }
    }
    for count in [1, 2, 31, 33, 64, 160] {
      var word: UInt64 = 1
      var keys: [UInt8] = []
      for _ in 0..<count {
        word = word &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        keys.append(littleEndian: word)
      }
      for flag in [2, 6] as [UInt8] {
        seeds.append([flag, 0, UInt8(count & 15)] + keys)
        seeds.append([flag, 0, 3] + keys + keys)
      }
    }
    return seeds
  }
}

extension IndexSegment {
  /// The ordinals of all sections whose key begins like `key`.
  func candidates(_ key: UInt64, in file: Span<UInt8>) throws(ArchiveError) -> [UInt64] {
    var found: [UInt64] = []
    try forEachCandidate(key, in: file) { found.append($0) }
    return found
  }
}
