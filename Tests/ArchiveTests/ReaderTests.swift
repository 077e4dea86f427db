import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `An archive reader` {
  private func sample(_ folder: TemporaryFolder) throws -> SampleArchive {
    var random = SeededGenerator(printing: 0x2ead)
    let small = (0..<5000).map { _ in random.text(20 + Int(random.next() % 900)) }
    let media = (0..<30).map { _ in random.bytes(1000 + Int(random.next() % 200_000)) }
    let large = [random.bytes(9_500_000), random.text(8 << 20), random.bytes(4 << 20), []]
    var seen = Set<CID>()
    let bodies = (small + media + large).filter {
      seen.insert(CID(codec: .raw, hashing: $0.span)).inserted
    }
    return try SampleArchive(in: folder, bodies: bodies, manifest: random.text(50))
  }

  @Test func `streams large bodies in pieces of a frame at most`() throws {
    let folder = try TemporaryFolder()
    let sample = try sample(folder)
    let reader = try ArchiveReader(path: sample.path)
    for (cid, body) in sample.sections where body.count > 100_000 {
      var stored: [UInt8] = []
      var longest = 0
      let isThere = try reader.read(cid) { chunk in
        longest = max(longest, chunk.count)
        stored += chunk.array
      }
      #expect(isThere && stored == body && longest <= 4 << 20)
    }
    #expect(try !reader.read(CID(codec: .raw, hashing: [9].span)) { _ in Issue.record("a body") })
    let (cid, body) = try #require(sample.sections.first { $0.body.count == 9_500_000 })
    #expect(throws: ArchiveError(.bodyTooLarge(cid, length: UInt64(body.count), limit: 1000))) {
      try reader.body(of: cid, limit: 1000)
    }
  }

  @Test func `visits sections, reading, skipping and stopping as it is told`() throws {
    let folder = try TemporaryFolder()
    let sample = try sample(folder)
    let reader = try ArchiveReader(path: sample.path)
    var visited: [CID] = []
    var bodies: [[UInt8]] = []
    var ended = 0
    try reader.forEachSection(
      begin: { section in
        #expect(section.ordinal == UInt64(visited.count))
        visited.append(section.cid)
        if section.ordinal % 3 == 1 { return false }
        bodies.append([])
        return true
      }, chunk: { bodies[bodies.count - 1] += $0.array }, end: { _ in ended += 1 })
    #expect(visited == sample.sections.map(\.cid))
    let expected = sample.sections.enumerated().filter { $0.offset % 3 != 1 }.map(\.element.body)
    #expect(bodies == expected && ended == expected.count)
    var count = 0
    try reader.forEachSection(
      in: 10..<21,
      begin: { _ in
        count += 1
        return false
      }, chunk: { _ in })
    #expect(count == 11)
    #expect(throws: ArchiveError(.unknownOrdinal(reader.generation.sectionCount))) {
      let end = reader.generation.sectionCount
      try reader.forEachSection(in: end..<end + 1, begin: { _ in true }, chunk: { _ in })
    }
  }

  @Test(arguments: [true, false])
  func `copies runs of sections in any order, hashing or not`(_ isHashing: Bool) throws {
    let folder = try TemporaryFolder()
    let sample = try sample(folder)
    let reader = try ArchiveReader(path: sample.path)
    var random = SeededGenerator(printing: 0x2075)
    let count = UInt64(sample.sections.count)
    var runs: [Range<UInt64>] = [0..<0, count - 1..<count, 0..<count]
    for _ in 0..<300 {
      let start = random.next() % count
      runs.append(start..<min(count, start + random.next() % 40))
    }
    var expected: [UInt8] = []
    for ordinal in runs.joined() {
      let (cid, body) = sample.sections[Int(ordinal)]
      CARWriter.appendPrefix(cid, bodyLength: UInt64(body.count), to: &expected)
      expected += body
    }
    var copied: [UInt8] = []
    try reader.copySections(runs, isHashing: isHashing) { copied += $0.array }
    #expect(copied == expected)
  }

  @Test
  func `hands out nothing as right that does not hash to its CID, whatever the checksums say`()
    throws
  {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x4a54)
    for size in [0, 100, 65_536, 5_000_000] {
      for level in [3, nil] {
        let body = level == nil ? random.bytes(size) : random.text(size)
        let wrong = CID(codec: .raw, hashing: (body + [1]).span)
        let content = HandMadeArchive.section(wrong, body)
        var archive = HandMadeArchive()
        let first = content.prefix(content.count - max(0, body.count - (4 << 20)))
        archive.addFrame(Array(first), [wrong], level: level)
        if first.count < content.count {
          archive.addFrame(Array(content[first.count...]), [], level: level)
        }
        try archive.addSegment()
        try archive.addFooter()
        let reader = try archive.open(in: folder)
        #expect(try reader.ordinal(of: wrong) == 0)
        let isDamaged = { (error: any Error) in
          (error as? ArchiveError)?.reason == .damagedSection(wrong)
        }
        #expect(performing: { try reader.body(of: wrong) }, throws: isDamaged)
        #expect(performing: { try reader.copySections([0..<1]) { _ in } }, throws: isDamaged)
        #expect(
          performing: {
            try reader.forEachSection(
              begin: { _ in true }, chunk: { _ in }, end: { _ in Issue.record("it ended well") })
          }, throws: isDamaged)
        let found = try reader.verify()
        #expect(found.damagedSections == [wrong] && found.sectionCount == 0)
      }
    }
  }

  @Test func `serves several threads, also while it finds that the index is damaged`() throws {
    let folder = try TemporaryFolder()
    let sample = try sample(folder)
    let generation = try #require(sample.generation)
    let segment = try #require(generation.segments.first)
    let file = try FileDescriptor.open(sample.path, .readWrite)
    // Entries in the middle of the segment: some lookups still work, others do not.
    let third = Int(generation.footerOffset - segment.offset) / 3
    let garbage = [UInt8](repeating: 0x55, count: third)
    try file.closeAfter {
      _ = try file.writeAll(toAbsoluteOffset: Int64(segment.offset) + Int64(third), garbage)
    }
    let reader = try ArchiveReader(path: sample.path)
    #expect(reader.recovery == nil)
    let wrong = Mutex(0)
    Parallel.perform(sample.sections.count, workers: 8) { index in
      let (cid, body) = sample.sections[index]
      var isRight = false
      do {
        isRight = try reader.ordinal(of: cid) == UInt64(index)
        if body.count < 100_000 || index % 4 == 0 {
          isRight = try isRight && reader.body(of: cid) == body
        }
      } catch { isRight = false }
      if !isRight { wrong.withLock { $0 += 1 } }
    }
    #expect(wrong.withLock { $0 } == 0)
    #expect(reader.recovery?.rebuild == .damagedIndex(offset: segment.offset))
    #expect(try reader.ordinal(of: CID(codec: .raw, hashing: [9].span)) == nil)
  }

  @Test func `makes the same index of the frames alone`() throws {
    let folder = try TemporaryFolder()
    let sample = try sample(folder)
    let segment = try #require(sample.generation?.segments.first)
    let bytes = try sample.bytes
    let end = Int(segment.offset)
    let file = try FileDescriptor.open(sample.path, .readWrite)
    try file.closeAfter { try file.resize(to: Int64(end)) }
    let mapped = try MappedFile(sample.path)
    let survey = try Survey(mapped)
    #expect(survey.isWhole && survey.end == end)
    #expect(survey.contentLength == sample.generation?.streamLength)
    let made = try mapped.withBytes { bytes in try survey.segment(in: bytes) }
    #expect(made == Array(bytes[end..<Int(try #require(sample.generation).footerOffset)]))
  }

  @Test func `ignores an interrupted tail, and says so`() throws {
    let folder = try TemporaryFolder()
    let sample = try SampleArchive(in: folder, bodies: [[1], [2], [3]], manifest: [0xa0])
    let intact = try sample.bytes
    let file = try FileDescriptor.open(sample.path, .readWrite)
    defer { try? file.close() }
    var random = SeededGenerator(printing: 0x7a11)
    var frame: [UInt8] = []
    DataFrame.appendRaw(random.bytes(300).span, to: &frame)
    let torn = Array(intact[Int(try #require(sample.generation).footerOffset)...].dropLast(1)) + [0]
    // Uncommitted bytes are never damage, nor is a copy of committed ones.
    for (tail, isDamaged) in [
      ([0], false), (frame, false), (frame + frame.prefix(100), false), (intact, false),
      (frame + torn, false), (random.bytes(200_000), false), (Array(torn.prefix(100)), false),
    ] {
      try file.resize(to: Int64(intact.count))
      try file.writeAll(toAbsoluteOffset: Int64(intact.count), tail)
      let reader = try ArchiveReader(path: sample.path)
      #expect(reader.generation == sample.generation)
      let recovery = Recovery(interruptedTail: UInt64(tail.count), isDamaged: isDamaged)
      #expect(reader.recovery == recovery)
      for (cid, body) in sample.sections { #expect(try reader.body(of: cid) == body) }
      let found = try reader.verify()
      #expect(found.worst == (isDamaged ? .damaged : .interruptedTail))
      #expect(found.damagedOrdinals == [] && found.sectionCount == 4)
    }
  }

  @Test func `finds by CID what lies behind damage when the index is lost, too`() throws {
    let folder = try TemporaryFolder()
    let sample = try sample(folder)
    let generation = try #require(sample.generation)
    let bytes = try sample.bytes
    let index = try bytes.span.withIndex(generation)
    // The first pack loses a byte in its middle, and everything from the index on is cut off.
    let first = index.first
    let file = try FileDescriptor.open(sample.path, .readWrite)
    let place = Int(first.offset) + Int(first.storedLength) / 2
    try file.closeAfter {
      try file.resize(to: Int64(generation.segments[0].offset))
      _ = try file.writeAll(toAbsoluteOffset: Int64(place), [~bytes[place]])
    }
    let reader = try ArchiveReader(path: sample.path)
    #expect(reader.recovery?.rebuild == .noFooter)
    var (saved, lost) = (0, 0)
    for (ordinal, (cid, body)) in sample.sections.enumerated() {
      if ordinal >= Int(index.second) {
        #expect(try reader.body(of: cid) == body)
      } else if let stored = try reader.body(of: cid) {
        #expect(stored == body)
        saved += 1
      } else {
        lost += 1
      }
    }
    #expect(saved > 0 && lost > 0)
    // With the segment in place again, the numbers are certain again.
    let segment = Int(generation.segments[0].offset)..<Int(generation.footerOffset)
    let again = try FileDescriptor.open(sample.path, .readWrite)
    try again.closeAfter {
      _ = try again.writeAll(toAbsoluteOffset: Int64(segment.lowerBound), Array(bytes[segment]))
    }
    let anchored = try ArchiveReader(path: sample.path)
    for (ordinal, (cid, _)) in sample.sections.enumerated() where ordinal >= Int(index.second) {
      #expect(try anchored.ordinal(of: cid) == UInt64(ordinal))
    }
  }
}

extension Span<UInt8> {
  /// The first frame of the index, and the ordinal with which the second begins.
  fileprivate func withIndex(_ generation: Generation) throws -> (first: FrameEntry, second: UInt64)
  {
    let index = try ArchiveIndex(generation, in: self)
    let segment = index.segments[0]
    return (segment.frameEntry(0, in: self), segment.frameEntry(1, in: self).firstOrdinal)
  }
}
