import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `Verifying an archive` {
  private func cid(_ body: [UInt8], _ codec: Codec = .raw) -> CID {
    CID(codec: codec, hashing: body.span)
  }

  private func pack(_ bodies: [[UInt8]]) -> [(CID, [UInt8])] { bodies.map { (cid($0), $0) } }

  private func reasons(_ archive: HandMadeArchive) throws -> [ArchiveError.Reason] {
    let folder = try TemporaryFolder()
    let reader = try archive.open(in: folder)
    return try reader.verify(workers: 1).findings.map(\.error.reason)
  }

  private func archive(_ fill: (inout HandMadeArchive) throws -> Void) throws -> HandMadeArchive {
    var archive = HandMadeArchive()
    try fill(&archive)
    try archive.addSegment()
    try archive.addFooter()
    return archive
  }

  @Test func `names the sections that are damaged, and counts those that are not`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x4e21)
    let text = (0..<3000).map { _ in random.text(500) }
    let media = (0..<10).map { _ in random.bytes(100_000) } + [random.bytes(9_000_000)]
    let sample = try SampleArchive(in: folder, bodies: text + media, manifest: [0xa0])
    let bytes = try sample.bytes
    let generation = try #require(sample.generation)
    let file = try FileDescriptor.open(sample.path, .readWrite)
    defer { try? file.close() }
    let index = try MappedFile(sample.path).withBytes { (bytes) throws in
      try ArchiveIndex(generation, in: bytes)
    }
    func place(_ ordinal: Int, frame: Int = 0) throws -> Int {
      try MappedFile(sample.path).withBytes { bytes in
        guard let first = index.row(of: UInt64(ordinal), in: bytes),
          let row = index.row(frame, after: first, in: bytes)
        else { return 0 }
        return Int(row.entry.offset)
      }
    }
    func verify(inverting places: [Int]) throws -> ArchiveVerification {
      for place in places { try file.writeAll(toAbsoluteOffset: Int64(place), [~bytes[place]]) }
      defer {
        for place in places {
          _ = try? file.writeAll(toAbsoluteOffset: Int64(place), [bytes[place]])
        }
      }
      return try ArchiveReader(path: sample.path).verify()
    }

    var progress: [UInt64] = []
    let intact = try ArchiveReader(path: sample.path).verify(progress: { done, total in
      #expect(total == generation.committedLength)
      progress.append(done)
    })
    #expect(intact.isIntact && intact.sectionCount == generation.sectionCount)
    #expect(progress.last == generation.committedLength && progress == progress.sorted())
    #expect(intact.byteCount == generation.committedLength)

    // A blob: its CID and its number.
    let blob = try verify(inverting: [try place(3002) + 50_000])
    #expect(blob.damagedSections == [sample.sections[3002].cid])
    #expect(blob.damagedOrdinals == [3002..<3003])
    #expect(blob.sectionCount == generation.sectionCount - 1)
    // The second of three frames of a large one.
    let large = try verify(inverting: [try place(3010, frame: 1) + 50_000])
    #expect(large.damagedSections == [sample.sections[3010].cid])
    #expect(large.damagedOrdinals == [3010..<3011])
    #expect(large.sectionCount == generation.sectionCount - 1)
    // Its first frame, where its CID stands: that cannot be told, its number can.
    let beginning = try verify(inverting: [try place(3010) + 30])
    #expect(beginning.damagedOrdinals == [3010..<3011])
    #expect(!beginning.damagedSections.contains(sample.sections[3010].cid))
    // The first pack, in its middle: what comes before is saved.
    let first = try place(0)
    let second = try place(2999)
    let packed = try verify(inverting: [first + (second - first) / 2])
    let lost = try #require(packed.damagedOrdinals.first)
    #expect(packed.damagedOrdinals.count == 1 && lost.lowerBound > 0 && lost.upperBound < 2999)
    #expect(packed.sectionCount == generation.sectionCount - UInt64(lost.count))
    // Headers of frames are needed for nothing, if the index knows where the frames are.
    let header = try verify(inverting: [try place(3005) + 1])
    #expect(header.damagedOrdinals == [] && !header.isIntact)
    #expect(header.sectionCount == generation.sectionCount)
    // All of that at once.
    let all = try verify(inverting: [
      first + 1, try place(3002) + 500, try place(3003), try place(3010, frame: 2) + 7,
    ])
    #expect(all.damagedOrdinals == [3002..<3003])
    #expect(all.findingCount >= 4)
  }

  @Test func `finds what the checksums do not`() throws {
    let bodies: [[UInt8]] = [[1], [2], [3]]
    let sound = try archive { $0.addPack(pack(bodies)) }
    #expect(try reasons(sound) == [])

    // A section that does not hash to its CID.
    let wrong = try archive { $0.addPack([(cid([1]), [2])]) }
    #expect(try reasons(wrong) == [.damagedSection(cid([1]))])
    // A CID in two sections, in one frame and in two.
    let twice = try archive { $0.addPack(pack([[1], [2], [1]])) }
    #expect(try reasons(twice) == [.repeatedSection(cid([1]))])
    let again = try archive {
      $0.addPack(pack(bodies))
      $0.addPack(pack([[4], [2]]))
    }
    #expect(try reasons(again) == [.repeatedSection(cid([2]))])
    // A large section that shares its frame, and one in a pack.
    let large = [UInt8](repeating: 7, count: 65_536)
    let shared = try archive { $0.addPack(pack([large, [1]])) }
    #expect(try !reasons(shared).isEmpty)
    let packed = try archive { $0.addPack(pack([[1], large])) }
    #expect(try !reasons(packed).isEmpty)
    // Frames that hold, and are not in the one form: short blocks, an empty one, the magic in a
    // compressed one.
    let content = HandMadeArchive.section(cid([1, 2, 3]), [1, 2, 3])
    var checksum: [UInt8] = []
    checksum.append(littleEndian: UInt32(truncatingIfNeeded: XXH64.hash(content.span)))
    let header: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd, 0x24, UInt8(content.count)]
    let rest = UInt8(content.count - 5)
    let short = try archive {
      let blocks =
        [5 << 3, 0, 0] + content.prefix(5) + [rest << 3 | 1, rest >> 5, 0] + content.dropFirst(5)
      $0.addStored(header + blocks + checksum, contentSize: content.count, [cid([1, 2, 3])])
    }
    let form = ArchiveError.Reason.malformedFrame("it is raw, but not in the form of a raw frame")
    #expect(try reasons(short) == [form])
    let all = UInt8(content.count)
    let padded = try archive {
      let blocks = [all << 3, all >> 5, 0] + content + [1, 0, 0]
      $0.addStored(header + blocks + checksum, contentSize: content.count, [cid([1, 2, 3])])
    }
    #expect(try reasons(padded) == [form])
    var random = SeededGenerator(printing: 0xf0)
    var body = random.bytes(30_000) + [UInt8](repeating: 0, count: 20_000)
    body.replaceSubrange(20_000..<20_016, with: ArchiveMagic.bytes)
    let section = HandMadeArchive.section(cid(body), body)
    var compressed: [UInt8] = []
    let isSmaller = ZstdCompressor().compress(
      section.span, level: 3, limit: 40_000, into: &compressed)
    #expect(isSmaller)
    let magical = try archive {
      $0.addStored(compressed, contentSize: section.count, [cid(body)])
    }
    #expect(try reasons(magical) == [.malformedFrame("it contains the magic")])
    // A section that continues in a next frame although it is small, and one that ends too early.
    let split = try archive {
      $0.addFrame(Array(content.dropLast(1)), [cid([1, 2, 3])])
      $0.addFrame([3], [])
    }
    #expect(try !reasons(split).isEmpty)
    let empty = try archive { $0.addFrame(content + [0], [cid([1, 2, 3])]) }
    #expect(try !reasons(empty).isEmpty)
    // Too few frames for a large one.
    let half = [UInt8](repeating: 9, count: 5_000_000)
    let cut = try archive {
      $0.addFrame(
        Array(HandMadeArchive.section(cid(half), half).prefix((4 << 20) + 40)), [cid(half)])
    }
    #expect(try !reasons(cut).isEmpty)
    // A frame that the table does not list, and sections that are not in it.
    let unknown = try archive {
      $0.addPack(pack(bodies))
      var hidden = HandMadeArchive()
      hidden.addPack(pack([[9]]))
      $0.addRaw(Array(hidden.bytes.dropFirst(HandMadeArchive().bytes.count)))
    }
    #expect(
      try reasons(unknown).contains(.damagedIndex("no frame table lists a frame that is there")))
    // Counts.
    var counted = HandMadeArchive()
    counted.addPack(pack(bodies))
    try counted.addSegment()
    try counted.addFooter(streamLength: 1)
    #expect(try reasons(counted).count == 1)
    // A head that is somewhere else, or not alone.
    let manifest: [UInt8] = [0xa0]
    let head = cid(manifest, .dagCBOR)
    for (ordinal, isRight) in [(UInt64(3), true), (2, false), (0, false)] {
      var headed = HandMadeArchive()
      headed.addPack(pack(bodies))
      let offset = UInt64(headed.bytes.count)
      headed.addPack([(head, manifest)])
      try headed.addSegment()
      headed.head = .init(cid: head, ordinal: ordinal, frameOffset: offset)
      try headed.addFooter()
      #expect(try reasons(headed).isEmpty == isRight)
    }
    var crowded = HandMadeArchive()
    let offset = UInt64(crowded.bytes.count)
    crowded.addPack([(head, manifest)] + pack(bodies))
    try crowded.addSegment()
    crowded.head = .init(cid: head, ordinal: 0, frameOffset: offset)
    try crowded.addFooter()
    #expect(try reasons(crowded).count == 1)
  }

  @Test func `accepts several generations, dead segments and kinds of later versions`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x6e4)
    var archive = HandMadeArchive()
    var all: [(CID, [UInt8])] = []
    for number in 0..<10 {
      let fresh = pack((0..<50).map { _ in random.text(200) + [UInt8(number)] })
      archive.addPack(fresh, level: 3)
      all += fresh
      try archive.addSegment()
      archive.addSkippable(77, random.bytes(30))
      try archive.addFooter()
      if number == 4 { try archive.addFooter() }
    }
    let reader = try archive.open(in: folder)
    #expect(reader.generation.number == 11 && reader.generation.segments.count == 10)
    for (ordinal, (cid, body)) in all.enumerated() {
      #expect(try reader.ordinal(of: cid) == UInt64(ordinal))
      #expect(try reader.body(of: cid) == body)
    }
    let found = try reader.verify()
    #expect(found.findings == [] && found.sectionCount == UInt64(all.count))
    // A CID of the first generation once more in a later one.
    archive.addPack([all[3]])
    try archive.addSegment()
    try archive.addFooter()
    #expect(try reasons(archive) == [.repeatedSection(all[3].0)])
    // Every byte of the chain is checked: footers, segments, and what is unknown.
    let bytes = archive.bytes
    let file = try FileDescriptor.open(FilePath(folder.file("hand-made")), .readWrite)
    defer { try? file.close() }
    try file.writeAll(toAbsoluteOffset: 0, bytes)
    for place in stride(from: 5, to: bytes.count - 672, by: 41) {
      try file.writeAll(toAbsoluteOffset: Int64(place), [bytes[place] ^ 0x10])
      let reader = try ArchiveReader(path: FilePath(folder.file("hand-made")))
      let found = try reader.verify(.quick, workers: 1)
      if found.isIntact { Issue.record("byte \(place) is changed, and a quick look sees nothing") }
      try file.writeAll(toAbsoluteOffset: Int64(place), [bytes[place]])
    }
  }
}
