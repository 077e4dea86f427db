import ArchiveTestSupport
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `The bytes of an archive` {
  @Test func `are those that FORMAT describes, from the first to the last`() throws {
    // One section, "hello" under a raw CID, and a manifest, the empty DAG-CBOR map; all of it raw,
    // being short.
    let storage = MemoryStorage()
    var writer = try ArchiveWriter.open(storage, carHeader: [0x01, 0xa0])
    let hello = CID(codec: .raw, hashing: Array("hello".utf8).span)
    let manifest = CID(codec: .dagCBOR, hashing: [0xa0].span)
    let ordinals = [
      try writer.append(hello, Array("hello".utf8).span), try writer.append(manifest, [0xa0].span),
    ]
    #expect(ordinals == [0, 1])
    let generation = try writer.commit(manifest: manifest)

    var expected: [UInt8] = []
    func frame(_ content: [UInt8]) -> [UInt8] {
      // Magic, descriptor, size; one last raw block; checksum.
      let size = UInt8(content.count)
      let checksum = UInt32(truncatingIfNeeded: XXH64.hash(content.span))
      return [0x28, 0xb5, 0x2f, 0xfd, 0x24, size] + [size << 3 | 1, size >> 5, 0] + content
        + little(checksum)
    }
    func little(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
      var bytes: [UInt8] = []
      bytes.append(littleEndian: value)
      return bytes
    }
    let magic: [UInt8] = [
      0xf0, 0x9f, 0x9a, 0x97, 0xf0, 0x9f, 0x93, 0xa6, 0xfe, 0xc9, 0x8a, 0xe5, 0xb1, 0xd7, 0x9c,
      0x83,
    ]
    let helloFrame = frame([41] + hello.bytes + Array("hello".utf8))
    let manifestFrame = frame([37] + manifest.bytes + [0xa0])
    expected += frame([0x01, 0xa0])
    let text = Array(ArchiveNote.text.utf8)
    var note: [UInt8] = [0x5c, 0x2a, 0x4d, 0x18]
    note += little(UInt32(text.count + 28)) + magic + little(UInt32(3)) + text
    note += little(XXH64.hash(note.span))
    expected += note
    let helloOffset = UInt64(expected.count)
    expected += helloFrame
    let manifestOffset = UInt64(expected.count)
    expected += manifestFrame

    // Both keys in the order of their first 28 bits, of which the first tells the bucket.
    let keys = [hello, manifest].enumerated().map { ordinal, cid in
      (cid.multihash.digest[0..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }, UInt32(ordinal))
    }.sorted { $0 < $1 }
    let segmentLength: UInt32 = 48 + 4 + 16 + 16 + 48 + 8
    var segment: [UInt8] = [0x5c, 0x2a, 0x4d, 0x18]
    segment += little(segmentLength - 8) + magic
    segment += little(UInt32(1)) + [0, 1, 0, 0] + little(UInt64(0)) + little(UInt32(2))
    segment += little(UInt32(2)) + little(UInt32(2))
    let marks: [UInt64: UInt64] = [0: 0b0110, 1: 0b0101, 2: 0b0011]
    let inFirstBucket = keys.filter { $0.0 >> 31 == 0 }.count
    segment += little(try #require(marks[UInt64(inFirstBucket)])) + little(UInt64(0))
    let entries: [UInt64] = keys.map { key, ordinal in
      let rest = (key << 1) >> 5
      return UInt64(rest) << 1 | UInt64(ordinal)
    }
    segment += little(entries[0] | entries[1] << 28) + little(UInt64(0))
    segment += little(helloOffset) + little(XXH64.hash(helloFrame.span)) + little(UInt32(0))
    segment += little(UInt32(helloFrame.count))
    segment += little(manifestOffset) + little(XXH64.hash(manifestFrame.span)) + little(UInt32(1))
    segment += little(UInt32(manifestFrame.count))
    segment += little(XXH64.hash(segment.span))
    let segmentOffset = UInt64(expected.count)
    expected += segment

    let footerOffset = UInt64(expected.count)
    var footer: [UInt8] =
      [0x5c, 0x2a, 0x4d, 0x18] + little(UInt32(160)) + magic + little(UInt32(2))
    footer += little(UInt16(1)) + little(UInt16(1)) + little(UInt64(4)) + little(UInt64(0))
    footer += little(UInt64(1)) + little(UInt64(0)) + little(UInt64(2))
    footer += little(UInt64(2 + 42 + 38)) + little(manifestOffset) + little(UInt64(1))
    footer += manifest.multihash.digest
    footer += little(segmentOffset) + little(UInt32(2)) + little(UInt32(2))
    footer += little(XXH64.hash(segment.span.extracting(0..<segment.count - 8)))
    footer += little(footerOffset)
    footer += little(XXH64.hash(footer.span))
    #expect(footer.count == 168)
    expected += footer

    #expect(storage.bytes == expected)
    #expect(generation.number == 1)
    #expect(generation.committedLength == UInt64(expected.count))
    #expect(generation.head == .init(cid: manifest, ordinal: 1, frameOffset: manifestOffset))
    #expect(storage.count(of: [.synchronize]) == 3)
  }

  @Test func `are an ordinary zstd file of an ordinary CAR`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0xca4)
    var bodies = (0..<500).map { _ in random.text(600) }
    bodies += [random.bytes(65_536), random.bytes(5_000_000), random.text(5_000_000), []]
    let sample = try SampleArchive(in: folder, bodies: bodies, manifest: random.text(99))
    #expect(try ZstdProgram.accepts(sample.path.string))
    let stream = try ZstdProgram.decompress(sample.path.string)
    #expect(stream == sample.stream)

    // A CAR reader of ten lines finds what went in.
    var found: [(CID, Int)] = []
    var offset = 0
    let bytes = stream.span
    guard case .value(let header) = Varint.read(bytes, at: &offset) else {
      Issue.record("no header")
      return
    }
    offset += Int(header)
    while offset < bytes.count {
      guard case .value(let length) = Varint.read(bytes, at: &offset) else { break }
      let end = offset + Int(length)
      let cid = try CID(bytes, at: &offset)
      let body = bytes.extracting(offset..<end)
      if cid.verify(body) != .matches { Issue.record("\(cid) does not verify") }
      found.append((cid, body.count))
      offset = end
    }
    #expect(found.map(\.0) == sample.sections.map(\.cid))
    #expect(found.map(\.1) == sample.sections.map(\.body.count))
  }

  @Test func `are the same however many workers there are`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x3032)
    let bodies =
      (0..<4000).map { _ in random.text(1000) } + (0..<100).map { _ in random.bytes(30_000) }
      + [random.text(6_000_000)]
    let one = try SampleArchive(in: folder, name: "1", bodies: bodies, options: .init(workers: 1))
    let four = try SampleArchive(in: folder, name: "4", bodies: bodies, options: .init(workers: 4))
    #expect(try one.bytes == four.bytes)
  }

  @Test(arguments: [1, 3, 9, 19])
  func `give the same sections back at level`(_ level: Int) throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x1e7e1)
    let bodies =
      (0..<300).map { _ in random.text(1000) } + [random.text(4_500_000), random.bytes(300_000)]
    let sample = try SampleArchive(in: folder, bodies: bodies, options: .init(level: level))
    #expect(try ZstdProgram.decompress(sample.path.string) == sample.stream)
    #expect(try ArchiveReader(path: sample.path).verify().findings == [])
  }

  @Test func `cost little for media`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x00ed1a)
    let bodies = (0..<50).map { _ in random.bytes(65_536 + Int(random.next() % 300_000)) }
    let sample = try SampleArchive(in: folder, bodies: bodies)
    let size = bodies.reduce(0) { $0 + $1.count }
    let fixed = 672 + 128 + sample.header.count + ArchiveNote.frame.count
    #expect(try sample.bytes.count - fixed <= size + size / 1000 + 96 * bodies.count)
  }
}
