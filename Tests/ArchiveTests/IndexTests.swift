import IPLD
import TestSupport
import Testing

@testable import Archive

/// Keys, and the segments that are made of them.
private struct Keys {
  var keys = KeyList()
  let base: UInt64

  init(_ count: Int, base: UInt64 = 0, _ key: (Int) -> UInt64) {
    self.base = base
    for number in 0..<count { keys.append(key(number)) }
  }

  /// The segment of some of them, each alone in a frame.
  func builder(_ form: IndexForm, _ range: Range<Int>? = nil) -> IndexSegmentBuilder {
    let range = range ?? 0..<keys.count
    let frames = range.map { number in
      FrameEntry(
        offset: UInt64(number) * 100, checksum: UInt64(number) &* 0x9e37_79b9_7f4a_7c15,
        firstOrdinal: base + UInt64(number), storedLength: 100)
    }
    return IndexSegmentBuilder(
      form, base: base + UInt64(range.lowerBound), keys: keys, range: range, frames: frames[...])
  }

  func bytes(_ form: IndexForm, _ range: Range<Int>? = nil) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try builder(form, range).encode { bytes.append($0) }
    return bytes
  }
}

@Suite struct `An index segment` {
  /// Sizes at which something changes, and ordinals at which keys keep more bits.
  private static let shapes: [(count: Int, base: UInt64)] = [
    (1, 0), (2, 0), (3, 7), (4, 0), (31, 1 << 40), (33, 0), (512, 0), (513, 5), (1025, 1 << 36),
    (5000, 0x3f000), (3000, 0x7ffff), (70_000, 1_000_000),
  ]

  @Test(arguments: [IndexForm.wide, .packed])
  func `finds every section under its key, and is as long as it says`(_ form: IndexForm) throws {
    var random = SeededGenerator(printing: 0x1de4)
    for (count, base) in Self.shapes {
      let keys = Keys(count, base: base) { _ in random.next() }
      let builder = keys.builder(form)
      let file = try keys.bytes(form)
      #expect(file.count == builder.length)
      let isEncoded = builder.isEncoded(in: file.span, at: 0, length: file.count)
      #expect(isEncoded)
      let segment = try IndexSegment(file.span, at: 0)
      let holds = segment.frame.holds(in: file.span)
      #expect(segment.form == form && holds)
      var wrong = 0
      for number in 0..<count {
        let found = try segment.candidates(
          keys.keys[number], in: file.span)
        if !found.contains(base + UInt64(number)) {
          Issue.record("number \(number) of \(count) is not found")
        }
        wrong += found.count - 1
      }
      #expect(wrong <= 2 + count * count / (1 << 26))
      var entries = segment.entries
      var seen = 0
      while let entry = try entries.next(in: file.span) {
        let ordinal = base + UInt64(entry.ordinal)
        #expect(entry.key == form.kept(keys.keys[Int(entry.ordinal)], of: ordinal))
        seen += 1
      }
      #expect(seen == count)
    }
  }

  @Test(arguments: [IndexForm.wide, .packed])
  func `is searched for a key in a few bytes, which it names before`(_ form: IndexForm) throws {
    var random = SeededGenerator(printing: 0x1de5)
    for (count, base) in Self.shapes {
      let keys = Keys(count, base: base) { _ in random.next() }
      let file = try keys.bytes(form)
      let segment = try IndexSegment(file.span, at: 0)
      for number in 0..<min(count, 200) {
        let key = number % 4 == 0 ? random.next() : keys.keys[number]
        guard let places = segment.places(of: key, in: file.span) else {
          Issue.record("no places are told of \(count) keys")
          continue
        }
        var sparse = [UInt8](repeating: 0, count: file.count)
        let header = 0..<segment.layout.marksOffset
        for range in [header, places.marks, places.entries] { sparse[range] = file[range] }
        #expect(places.entries.count <= 16_000)
        let expected = try segment.candidates(key, in: file.span)
        let found = try segment.candidates(key, in: sparse.span)
        #expect(found == expected)
      }
    }
  }

  @Test(arguments: [IndexForm.wide, .packed])
  func `that is merged of others is the one that all their sections make`(_ form: IndexForm) throws
  {
    var random = SeededGenerator(printing: 0x3e49)
    for base in [0, 0x3fd44, 1 << 30] as [UInt64] {
      // Few different keys, so that many begin alike.
      let few = (0..<40).map { _ in random.next() }
      let keys = Keys(2000, base: base) { number in
        number % 3 == 0 ? few[Int(random.next() % 40)] : random.next()
      }
      for cuts in [[2000], [1, 2000], [700, 701, 1500, 2000], [513, 1025]] {
        var file: [UInt8] = []
        var older: [IndexSegment] = []
        var start = 0
        for cut in cuts {
          let offset = file.count
          file += try keys.bytes(form, start..<cut)
          older.append(try IndexSegment(file.span, at: offset))
          start = cut
        }
        let merged = keys.builder(form, start..<2000).merged(
          with: older, from: 0, in: MappedFile(copying: file))
        var bytes: [UInt8] = []
        _ = try merged.encode { bytes.append($0) }
        let whole = try keys.bytes(form)
        #expect(bytes == whole)
        let isEncoded = merged.isEncoded(in: whole.span, at: 0, length: whole.count)
        #expect(isEncoded)
      }
    }
  }

  @Test func `takes four bytes an entry in an archive of a hundred thousand records`() throws {
    var random = SeededGenerator(printing: 0x4b)
    for (count, limit) in [(126_753, 3.81), (100_000, 3.95), (131_073, 3.96), (1_000_000, 4.35)] {
      let keys = Keys(count) { _ in random.next() }
      let layout = SegmentLayout(.packed, base: 0, count: count, frameCount: 1)
      #expect(keys.builder(.packed).length == 24 * count + layout.length - 24)
      #expect(Double(layout.length) / Double(count) <= limit)
    }
  }

  @Test func `is met by chance by few keys that are not there`() throws {
    var random = SeededGenerator(printing: 0xfa15e)
    let count = 131_072
    let keys = Keys(count) { _ in random.next() }
    let file = try keys.bytes(.packed)
    let segment = try IndexSegment(file.span, at: 0)
    let lookups = 1 << 20
    var wrong = 0
    for _ in 0..<lookups {
      wrong += try segment.candidates(random.next(), in: file.span).count
    }
    // 512 are expected.
    #expect((300...800).contains(wrong))
  }

  @Test(arguments: [IndexForm.wide, .packed])
  func `has no sixteen bytes without one below 80, whatever its keys are`(_ form: IndexForm) throws
  {
    for count in [1, 2, 200, 513, 4000] {
      // Ones wherever a writer of keys can put them: in all keys, and, spread, in the ordinals of
      // neighbours.
      for keys in [
        Keys(count) { _ in UInt64.max },
        Keys(count) { number -> UInt64 in UInt64(number) << 52 | UInt64.max >> 12 },
        Keys(count) { number -> UInt64 in ~(UInt64(number.nonzeroBitCount) << 40) },
      ] as [Keys] {
        let file = try keys.bytes(form)
        let end = file.count - 8 - 24 * count
        var run = 0
        for byte in file[48..<end] {
          run = byte < 0x80 ? 0 : run + 1
          if run >= 16 { Issue.record("16 bytes without one below 80") }
        }
      }
    }
  }

  @Test func `of the packed form keeps more of a key the more sections there are before it`() {
    let ordinals: [UInt64] = [
      0, 0x3ffff, 0x40000, 0x7ffff, 0x80000, 0x8_0000_0000, 0x10_0000_0000, 1 << 60,
    ]
    let bits = ordinals.map { IndexForm.packed.keyBits(of: $0) }
    #expect(bits == [28, 28, 31, 31, 32, 48, 48, 48])
    #expect(IndexForm.wide.keyBits(of: 1 << 60) == 32)
  }

  @Test func `whose fan-out, marks or entries are anything ends every lookup`() throws {
    var random = SeededGenerator(printing: 0xbad)
    for round in 0..<400 {
      let count = [1, 2, 40, 513, 1200][round % 5]
      let keys = Keys(count, base: UInt64(round % 3) << 17) { _ in random.next() }
      var file = try keys.bytes(.packed)
      let layout = SegmentLayout(.packed, base: keys.base, count: count, frameCount: count)
      let offsets = [
        SegmentLayout.fanOutOffset, layout.marksOffset, layout.entriesOffset, layout.framesOffset,
      ]
      let part = Int(random.next() % 3)
      let range = offsets[part]..<offsets[part + 1]
      for _ in 0..<(1 + random.next() % 40) {
        let values: [UInt8] = [0, 0xff, 0x7f, UInt8(truncatingIfNeeded: random.next())]
        file[Int.random(in: range, using: &random)] = values[Int(random.next() % 4)]
      }
      if random.next() % 8 == 0 { for place in range { file[place] = 0xff } }
      if random.next() % 8 == 0 { for place in range { file[place] = 0 } }
      let segment = try IndexSegment(file.span, at: 0)
      for number in 0..<count {
        do throws(ArchiveError) {
          let key = keys.keys[number]
          for ordinal in try segment.candidates(key, in: file.span) {
            #expect(segment.base <= ordinal && ordinal < segment.end)
          }
        } catch {
          #expect(!error.description.isEmpty)
        }
      }
      var seen = 0
      var entries = segment.entries
      do throws(ArchiveError) {
        while try entries.next(in: file.span) != nil { seen += 1 }
        #expect(seen == count)
      } catch {
        #expect(seen < count)
      }
      let merged = keys.builder(.packed, count..<count).merged(
        with: [segment], from: 0, in: MappedFile(copying: file))
      do {
        _ = try merged.encode { _ in }
      } catch let error as ArchiveError {
        #expect(!error.description.isEmpty)
      }
    }
  }

  @Test func `in which many keys begin alike is searched one by one`() throws {
    // Made-up digests, and bodies that are not hashed here.
    @Sendable func cid(_ number: UInt64) -> CID {
      CID(codec: .raw, digest: SHA256Digest(words: (0, 0, number, number)))
    }
    let folder = try TemporaryFolder()
    var archive = HandMadeArchive()
    archive.addPack((0..<300).map { (cid($0), [UInt8($0 & 0xff)]) })
    try archive.addSegment()
    archive.addPack((300..<400).map { (cid($0), [1]) })
    try archive.addSegment()
    try archive.addFooter()
    let reader = try archive.open(in: folder)
    let ordinals = try reader.ordinals(500) { cid(UInt64($0)) }
    #expect(ordinals == (0..<400) + [UInt64](repeating: .max, count: 100))
  }

  @Test func `of another form than the file has is refused`() throws {
    let folder = try TemporaryFolder()
    for form in [IndexForm.wide, .packed] {
      var archive = HandMadeArchive()
      archive.form = form
      let body = Array("hello".utf8)
      archive.addPack([(CID(codec: .raw, hashing: body.span), body)])
      try archive.addSegment()
      archive.form = form == .wide ? .packed : .wide
      try archive.addFooter()
      let reader = try archive.open(in: folder)
      #expect(reader.recovery?.rebuild != nil)
      #expect(try reader.verify().isIntact == false)
    }
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
