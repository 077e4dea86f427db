import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Archive

@Suite struct `Repairing an archive` {
  /// An archive of several generations, in some of which segments are merged.
  private func sample(_ seed: UInt64, generations: Int = 20) throws -> AppendedArchive {
    var random = SeededGenerator(printing: seed)
    let archive = AppendedArchive()
    for _ in 0..<generations {
      try archive.append((0..<1 + Int(random.next() % 30)).map { _ in random.text(80) })
    }
    return archive
  }

  private func repaired(_ archive: AppendedArchive, _ bytes: [UInt8]) throws -> ArchiveRepair.Report
  {
    archive.storage.bytes = bytes
    return try ArchiveRepair.run(archive.storage)
  }

  @Test func `changes nothing in one that is in order`() throws {
    let archive = try sample(0x4e9a1)
    let bytes = archive.storage.bytes
    let report = try repaired(archive, bytes)
    #expect(report.isUnchanged && report.firstLost == nil)
    #expect(archive.storage.bytes == bytes)
  }

  @Test func `makes every damaged segment and footer again, byte for byte`() throws {
    let archive = try sample(0x4e9a2)
    let bytes = archive.storage.bytes
    var random = SeededGenerator(printing: 0x4e9a3)
    for (number, generation) in archive.generations.enumerated() {
      let segment = Int(try #require(generation.segments.last).offset)
      let footer = Int(generation.footerOffset)
      let end = Int(generation.committedLength)
      for range in [segment..<footer, footer..<end, segment..<end] {
        var damaged = bytes
        switch random.next() % 3 {
        case 0: damaged[range.randomElement(using: &random) ?? segment] ^= 0x40
        case 1: damaged.replaceSubrange(range, with: repeatElement(0, count: range.count))
        default: damaged.replaceSubrange(range, with: random.bytes(range.count))
        }
        let report = try repaired(archive, damaged)
        if archive.storage.bytes != bytes {
          Issue.record("generation \(number + 1), \(range): \(report)")
        }
        #expect(report.firstLost == nil)
      }
    }
    // All of them at once.
    var damaged = bytes
    for generation in archive.generations {
      let segment = Int(try #require(generation.segments.last).offset)
      for place in segment..<Int(generation.committedLength) { damaged[place] = 0 }
    }
    let report = try repaired(archive, damaged)
    #expect(archive.storage.bytes == bytes)
    #expect(report.segments.count == 20 && report.footers.count == 20)
  }

  @Test func `takes a generation that is lost with its index from a copy of the archive`() throws {
    var random = SeededGenerator(printing: 0x4e9b1)
    let archive = AppendedArchive()
    // The indexes of the later ones are too small to be merged with the first.
    for count in [40, 3, 2, 3, 1] {
      try archive.append((0..<count).map { _ in random.text(80) })
    }
    let bytes = archive.storage.bytes
    let generations = archive.generations
    let copy = try ArchiveReader(MappedFile(copying: bytes))
    for (number, generation) in generations.enumerated().dropLast() {
      let start = number > 0 ? Int(generations[number - 1].committedLength) : 0
      var damaged = bytes
      for place in start..<Int(generation.committedLength) { damaged[place] = 0 }
      for isRepairedBefore in [false, true] {
        let what = "generation \(number + 1), \(isRepairedBefore)"
        archive.storage.bytes = damaged
        if isRepairedBefore {
          #expect(try ArchiveRepair.run(archive.storage).firstLost != nil, "\(what)")
        }
        let report = try ArchiveRepair.run(archive.storage, from: [copy])
        #expect(report.firstLost == nil && report.lostSectionCount == 0, "\(what): \(report)")
        let reader = try ArchiveReader(archive.storage.map())
        #expect(try reader.verify(workers: 1).isIntact, "\(what)")
        for ordinal in copy.ordinals {
          let section = try copy.section(at: ordinal)
          #expect(try reader.section(at: ordinal).cid == section.cid, "\(what)")
        }
        let again = try ArchiveRepair.run(archive.storage, from: [copy])
        #expect(again.isUnchanged, "\(what): \(again)")
      }
    }
    // An older copy, and one that went on otherwise, know what they share with this one.
    let shared = Int(generations[2].committedLength)
    let fork = AppendedArchive()
    fork.storage.bytes = Array(bytes[..<shared])
    fork.generations = Array(generations[..<3])
    try fork.append((0..<5).map { _ in random.text(80) })
    for source in [Array(bytes[..<shared]), fork.storage.bytes] {
      var damaged = bytes
      for place in 0..<Int(generations[0].committedLength) { damaged[place] = 0 }
      archive.storage.bytes = damaged
      let source = try ArchiveReader(MappedFile(copying: source))
      #expect(try ArchiveRepair.run(archive.storage, from: [source]).firstLost == nil)
      #expect(try ArchiveReader(archive.storage.map()).verify(workers: 1).isIntact)
      // What lies behind the fork it does not know.
      damaged = bytes
      for place in shared..<Int(generations[3].committedLength) { damaged[place] = 0 }
      archive.storage.bytes = damaged
      #expect(try ArchiveRepair.run(archive.storage, from: [source]).firstLost != nil)
    }
  }

  @Test func `of one that is cut off gives the last generation that is all there`() throws {
    let archive = try sample(0x4e9a4, generations: 3)
    let bytes = archive.storage.bytes
    for cut in Int(archive.generations[0].committedLength)..<bytes.count {
      let report = try repaired(archive, Array(bytes[..<cut]))
      let reader = try ArchiveReader(archive.storage.map())
      // What ends in a whole manifest is a whole generation.
      let manifests = archive.generations.map { Int($0.segments.last?.offset ?? 0) }
      let expected = archive.generations[manifests.lastIndex { $0 <= cut } ?? 0]
      if reader.generation.head != expected.head || report.firstLost != nil
        || !archive.storage.bytes.starts(with: bytes[..<Int(expected.committedLength)])
      {
        Issue.record("cut at \(cut): \(report)")
      }
      #expect(try reader.verify(workers: 1).isIntact)
    }
  }

  @Test func `leaves alone what it cannot make again`() throws {
    let archive = try sample(0x4e9a5, generations: 4)
    let bytes = archive.storage.bytes
    for generation in archive.generations {
      let head = try #require(generation.head)
      var damaged = bytes
      damaged[Int(head.frameOffset) + 20] ^= 1
      let report = try repaired(archive, damaged)
      #expect(report.firstLost?.offset == head.frameOffset)
      #expect(archive.storage.bytes == damaged)
      #expect(report.isUnchanged)
    }
    archive.storage.bytes = Array("no archive at all, but some text".utf8)
    #expect(throws: (any Error).self) { try ArchiveRepair.run(archive.storage) }
  }

  @Test func `says how much it cuts off behind what it makes count`() throws {
    let archive = try sample(0x4e9a8, generations: 2)
    var random = SeededGenerator(printing: 0x4e9a9)
    var writer = try archive.open()
    var ends: [Int] = []
    for _ in 0..<2 {
      let body = random.bytes(5000)
      try writer.append(CID(codec: .raw, hashing: body.span), body.span)
      try writer.flush()
      ends.append(archive.storage.bytes.count)
    }
    // The first is whole, and of the second a thousand bytes are missing.
    let report = try repaired(archive, Array(archive.storage.bytes.dropLast(1000)))
    #expect(report.isReindexed)
    #expect(report.bytesCutOff == UInt64(ends[1] - 1000 - ends[0]))
  }

  @Test func `cuts off what an interrupted write has left`() throws {
    let archive = try sample(0x4e9a6, generations: 2)
    let bytes = archive.storage.bytes
    var random = SeededGenerator(printing: 0x4e9a7)
    let report = try repaired(archive, bytes + random.bytes(3000))
    #expect(report.bytesCutOff == 3000)
    #expect(archive.storage.bytes == bytes)
    // Frames, of which one is torn.
    let body = random.text(5000)
    var newest: CID?
    for isSnapshot in [false, true] {
      archive.storage.bytes = bytes
      var writer = try archive.open()
      try writer.append(CID(codec: .raw, hashing: body.span), body.span)
      try writer.flush()
      if isSnapshot {
        let (cid, manifest) = try manifest(9, after: archive.generations.last?.head?.cid)
        newest = cid
        try writer.append(cid, manifest.span)
        try writer.flush()
      }
      var torn = archive.storage.bytes
      torn[bytes.count + 100] ^= 1
      _ = try repaired(archive, torn)
      #expect(archive.storage.bytes.starts(with: bytes))
      let reader = try ArchiveReader(archive.storage.map())
      #expect(
        reader.generation.head?.cid == (isSnapshot ? newest : archive.generations.last?.head?.cid))
    }
  }

  @Test func `cuts off nothing that was committed, however damaged`() throws {
    let archive = try sample(0x4e9a8, generations: 3)
    let bytes = archive.storage.bytes
    var random = SeededGenerator(printing: 0x4e9a9)
    let last = try #require(archive.generations.last)
    let head = try #require(last.head)
    let segment = try #require(last.segments.last)
    for _ in 0..<200 {
      // The footer and the index, of which they can be made again; and also a frame, of which they
      // cannot.
      var damaged = bytes
      let footer = Int(last.footerOffset)..<bytes.count
      damaged[try #require(footer.randomElement(using: &random))] ^= 0x11
      damaged[Int(segment.offset) + 60] ^= 1
      let report = try repaired(archive, damaged)
      #expect(report.firstLost == nil)
      #expect(archive.storage.bytes == bytes)
      damaged[Int(head.frameOffset) + 20] ^= 1
      #expect(try repaired(archive, damaged).firstLost != nil)
      #expect(archive.storage.bytes.starts(with: damaged[..<Int(segment.offset)]))
    }
  }

  /// The frame at `offset` with another number in it, and a checksum that holds.
  private func resealed(_ bytes: [UInt8], _ offset: Int, at place: Int, _ value: [UInt8]) throws
    -> [UInt8]
  {
    var bytes = bytes
    let frame = try SkippableFrame(bytes.span, at: offset)
    bytes.replaceSubrange(offset + place..<offset + place + value.count, with: value)
    var checksum: [UInt8] = []
    checksum.append(littleEndian: XXH64.hash(bytes[offset..<frame.end - 8].span))
    bytes.replaceSubrange(frame.end - 8..<frame.end, with: checksum)
    return bytes
  }

  @Test func `believes no count beyond what the file can hold`() throws {
    let archive = try sample(0x4e9aa, generations: 5)
    let bytes = archive.storage.bytes
    var places: [(offset: Int, place: Int, length: Int)] = []
    for generation in archive.generations {
      let segment = Int(try #require(generation.segments.last).offset)
      places += [48, 56, 64, 72, 80, 88, 128].map { (Int(generation.footerOffset), $0, 8) }
      places += [(segment, 32, 8), (segment, 40, 4), (segment, 44, 4)]
    }
    for (offset, place, length) in places {
      for shift in [20, 31, 44, 61, 63] where shift < 8 * length {
        let value = (0..<length).map { UInt8(truncatingIfNeeded: (UInt64(1) << shift) >> (8 * $0)) }
        let forged = try resealed(bytes, offset, at: place, value)
        let comment: Comment = "2^\(shift) at \(place) of \(offset)"
        archive.storage.bytes = forged
        guard let reader = try? ArchiveReader(archive.storage.map()) else { continue }
        _ = try reader.verify(workers: 1)
        let found = try reader.surveyed()
        #expect(found.sectionCount < UInt64(2 * bytes.count + 5000), comment)
        for (cid, body) in archive.bodies {
          #expect(try found.body(of: cid) == body, comment)
        }
        _ = try? ArchiveRepair.run(archive.storage)
        let repaired = try ArchiveReader(archive.storage.map())
        for (cid, body) in archive.bodies {
          #expect(try repaired.body(of: cid) == body, comment)
        }
      }
    }
  }

  @Test func `writes no footer that cannot be read`() throws {
    let archive = try sample(0x4e9ab, generations: 6)
    let bytes = archive.storage.bytes
    for (number, generation) in archive.generations.enumerated() {
      for later in archive.generations[(number + 1)...] {
        for length in [100, 120, 128, 136] {
          var damaged = bytes
          let place = Int(generation.footerOffset)
          let beginning = bytes[Int(later.footerOffset)..<Int(later.footerOffset) + length]
          damaged.replaceSubrange(place..<place + length, with: beginning)
          let report = try repaired(archive, damaged)
          let comment: Comment = "\(length) bytes of \(later.number) over \(generation.number)"
          #expect(report.firstLost == nil, comment)
          let reader = try ArchiveReader(archive.storage.map())
          #expect(reader.generation.head == archive.generations.last?.head, comment)
          #expect(try reader.verify(workers: 1).isIntact, comment)
        }
      }
    }
  }

  @Test func `of one in which a frame lies twice is intact`() throws {
    var random = SeededGenerator(printing: 0x4e9af)
    let archive = AppendedArchive()
    let first = try archive.append([random.bytes(300)])
    try archive.append([random.bytes(70_000)])
    let whole = archive.storage.bytes
    let copy = try ArchiveReader(MappedFile(copying: whole))
    var damaged = whole
    let frame = ArchiveNote.frame.count + 72..<Int(try #require(first.head).frameOffset)
    let place = Int(first.committedLength) + 9
    damaged.replaceSubrange(place..<place + frame.count, with: whole[frame])
    archive.storage.bytes = damaged
    let report = try ArchiveRepair.run(archive.storage, from: [copy])
    #expect(report.firstLost == nil && report.sectionsHealed > 0)
    #expect(try archive.reader().verify(workers: 1).isIntact)
    let repaired = archive.storage.bytes
    #expect(try ArchiveRepair.run(archive.storage).isUnchanged)
    #expect(archive.storage.bytes == repaired)
  }

  @Test func `counts bytes that were superseded once`() throws {
    var random = SeededGenerator(printing: 0x4e9b1)
    let archive = AppendedArchive()
    let first = try archive.append([random.bytes(300)])
    let copy = try ArchiveReader(MappedFile(copying: archive.storage.bytes))
    let frame = ArchiveNote.frame.count + 72..<Int(try #require(first.head).frameOffset)
    archive.storage.bytes[frame.lowerBound + frame.count / 2] ^= 1
    let report = try ArchiveRepair.run(archive.storage, from: [copy])
    #expect(report.bytesVoided > 0)
    let verification = try archive.reader().verify(workers: 1)
    #expect(verification.isIntact)
    #expect(verification.supersededBytes == report.bytesVoided)
  }

  @Test func `heals no footer over the beginning of a further archive`() throws {
    var random = SeededGenerator(printing: 0x4e9b0)
    var options = ArchiveOptions()
    options.parity = 5
    let (archive, other) = (AppendedArchive(), AppendedArchive())
    for archive in [archive, other] { try archive.append([random.bytes(5000)], options) }
    var header: [UInt8] = []
    CARWriter.appendHeader(roots: [CID(codec: .dagCBOR, hashing: [7].span)], to: &header)
    var stored: [UInt8] = []
    DataFrame.appendRaw(header.span, to: &stored)
    let second = stored + other.storage.bytes.dropFirst(72)
    // The first one's footer lacks bytes.
    let bytes = archive.storage.bytes.dropLast(100) + archive.storage.bytes.suffix(84) + second
    archive.storage.bytes = Array(bytes)
    let error = #expect(throws: ArchiveError.self) { try ArchiveRepair.run(archive.storage) }
    guard case .furtherArchive? = error?.reason else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(archive.storage.bytes == Array(bytes))
  }
}
