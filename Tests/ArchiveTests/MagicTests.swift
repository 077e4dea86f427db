import Archive
import IPLD
import SystemPackage
import TestSupport
import Testing

@Suite struct `The magic` {
  private let magic = ArchiveMagic.bytes

  private func next(_ bytes: [UInt8], from start: Int = 0) -> Int? {
    ArchiveMagic.next(in: bytes.span, from: start)
  }

  private func last(_ bytes: [UInt8], before end: Int) -> Int? {
    ArchiveMagic.last(before: end, of: bytes.count) {
      Array(bytes[$0])
    } _: {
      $0
    }
  }

  @Test func `is found at every alignment, whole only, from both ends`() {
    var random = SeededGenerator(printing: 0x3a61c)
    for place in 0..<40 {
      // High bytes around it are what the fast search has to look at twice.
      for filler: UInt8 in [0x00, 0xf0, 0xff] {
        var bytes = [UInt8](repeating: filler, count: place) + magic + random.bytes(20)
        #expect(next(bytes) == place)
        #expect(next(bytes, from: place) == place)
        #expect(next(bytes, from: place + 1) == nil)
        #expect(last(bytes, before: bytes.count) == place)
        #expect(last(bytes, before: place) == nil)
        #expect(next(Array(bytes[..<(place + 16)])) == place)
        #expect(next(Array(bytes[..<(place + 15)])) == nil)
        bytes[place + 9] ^= 1
        #expect(next(bytes) == nil)
      }
    }
    var long = random.bytes(300_000)
    for place in [5, 65_520, 65_530, 131_072, 200_001] {
      long.replaceSubrange(place..<place + 16, with: magic)
    }
    var found: [Int] = []
    let last: Int? = ArchiveMagic.last(before: long.count, of: long.count) {
      Array(long[$0])
    } _: { place in
      found.append(place)
      return nil
    }
    #expect(last == nil)
    #expect(found == [200_001, 131_072, 65_530, 5])
  }

  /// The raw frame of `content` must hold it, not the magic, and be the one way to write it.
  private func check(_ content: [UInt8], _ what: String) throws {
    var stored: [UInt8] = []
    DataFrame.appendRaw(content.span, to: &stored)
    let frame = try DataFrame(stored.span, at: 0, limit: stored.count)
    let isRight =
      frame.isRaw && frame.length == stored.count && frame.contentSize == content.count
      && frame.rawContent(in: stored.span) == content
      && frame.rawChecksumHolds(in: stored.span)
      && frame.isCanonicalRaw(in: stored.span)
      && ArchiveMagic.next(in: stored.span) == nil
      && ZstdDecompressor().decompress(stored.span, size: content.count) == content
    if !isRight { Issue.record("\(what): the raw frame is wrong") }
  }

  @Test func `is split in raw frames wherever it lies`() throws {
    var random = SeededGenerator(printing: 0x3a61d)
    for place in 0..<33 {
      try check(random.bytes(place) + magic, "ends with it at \(place)")
      try check(random.bytes(place) + magic + magic + magic + [1], "three times at \(place)")
    }
    let long = random.bytes(2 * 131_072 + 500)
    for distance in -40...40 {
      var content = long
      let place = 131_072 + distance
      content.replaceSubrange(place..<place + 16, with: magic)
      try check(content, "at block end and \(distance)")
      // Behind a cut, the blocks count from the start.
      content.replaceSubrange(1000..<1016, with: magic)
      let second = 1008 + 131_072 + distance
      content.replaceSubrange(second..<second + 16, with: magic)
      try check(content, "at the second block's end and \(distance)")
    }
    var full: [UInt8] = []
    while full.count < 1 << 20 { full += magic }
    try check(full, "nothing else")
    for length in 1..<16 { try check(Array(magic[0..<length]), "its first \(length) bytes") }
  }

  @Test(arguments: 12..<16)
  func `is not spelled by the end of a blob and the checksum after it`(_ length: Int) throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0xc4ec + UInt64(length))
    // Under an unknown hash function, the body may be anything: also one whose checksum is what is
    // left of M.
    let cid = CID(
      codec: .raw,
      multihash: Multihash(function: HashFunction(rawValue: 0x1e), digest: random.bytes(32)))
    // Two bytes of length and 36 of CID: with 218 more the stripes that XXH64 works in end before
    // the forged bytes.
    var content: [UInt8] = []
    CARWriter.appendPrefix(cid, bodyLength: UInt64(218 + 8 + length), to: &content)
    let bodyStart = content.count
    content += random.bytes(218)
    content = ChecksumForger.content(content, tail: Array(magic[0..<length]), spelling: magic)
    let body = Array(content[bodyStart...])
    let checksum = UInt32(truncatingIfNeeded: XXH64.hash(content.span))
    let isSpelled = DataFrame.spellsMagic(endOf: content.span, checksum: checksum)
    #expect(isSpelled)
    try check(content, "spelled after \(length) bytes")

    let sample = try SampleArchive(in: folder, sections: [(cid, body)])
    let bytes = try sample.bytes
    // Only the note, the index segment and the footer have the magic.
    var places: [Int] = []
    var from = 0
    while let place = ArchiveMagic.next(in: bytes.span, from: from) {
      places.append(place)
      from = place + 1
    }
    #expect(places.count == 3)
    #expect(try ZstdProgram.decompress(sample.path.string) == sample.stream)
    let reader = try ArchiveReader(path: sample.path)
    #expect(try reader.body(of: cid) == body)
    let found = try reader.verify()
    #expect(found.isIntact && found.unverifiableSections == [cid])
  }

  @Test func `in a blob that is an archive misleads nobody`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0xb10b)
    let inner = try SampleArchive(
      in: folder, name: "inner", bodies: (0..<40).map { _ in random.bytes(5000) },
      manifest: random.text(50))
    let blob = try inner.bytes
    let small = Array(blob.suffix(168 + 600))
    let outer = try SampleArchive(
      in: folder, name: "outer", bodies: [random.bytes(100), blob, small, blob + random.bytes(9)],
      manifest: random.text(60))
    #expect(try ZstdProgram.decompress(outer.path.string) == outer.stream)
    #expect(try ArchiveReader(path: outer.path).verify().findings == [])
    let bytes = try outer.bytes
    let file = try FileDescriptor.open(outer.path, .readWrite)
    defer { try? file.close() }
    // Cut anywhere, the file never takes a footer of the blob's for its own.
    for length in stride(from: bytes.count - 1, to: 200, by: -4001) {
      try file.resize(to: Int64(length))
      let reader = try ArchiveReader(path: outer.path)
      #expect(reader.generation.number == 0)
      #expect(reader.recovery?.rebuild == .noFooter)
      // Nor what is in a blob that was cut off for its own.
      let found = try inner.sections.filter { cid, body in
        try body.count == 5000 && reader.ordinal(of: cid) != nil
      }
      #expect(found.isEmpty, "cut off to \(length) bytes")
    }
  }

  @Test func `in compressible content makes the frame a raw one`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0xc0)
    // Literals that zstd does not squeeze keep the magic as it is in the compressed frame.
    var body = random.bytes(40_000)
    body.replaceSubrange(20_000..<20_016, with: magic)
    body += [UInt8](repeating: 0, count: 20_000)
    let plain = try SampleArchive(
      in: folder, name: "plain",
      bodies: [random.bytes(40_000) + [UInt8](repeating: 0, count: 20_000)])
    let sample = try SampleArchive(in: folder, name: "magic", bodies: [body])
    #expect(try plain.bytes.count < 45_000)
    #expect(try sample.bytes.count > 60_000)
    #expect(try ArchiveReader(path: sample.path).body(of: sample.sections[0].cid) == body)
    #expect(try ArchiveReader(path: sample.path).verify().findings == [])
  }
}
