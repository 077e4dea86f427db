import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

/// An archive of every kind of data frame, and where each byte of its sections lies.
///
/// The places are worked out from the form of a frame alone (FORMAT 3.1), not by the code that is
/// tested.
private struct FrameKinds {
  /// A part of the bytes of a section, its length not counted, in one frame.
  struct Part {
    let frame: Range<Int>
    let content: Range<Int>
  }

  private(set) var archive = HandMadeArchive()
  private(set) var sections: [(cid: CID, body: [UInt8], parts: [Part])] = []
  /// Bytes that say something of others: headers of frames and blocks, and lengths of sections.
  private(set) var sensitive: [Int] = []

  init(withSeveralFrames: Bool, seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    func raw(_ lengths: [Int]) -> [(CID, [UInt8])] {
      lengths.map { length in
        let body = random.bytes(length)
        return (CID(codec: .raw, hashing: body.span), body)
      }
    }
    func text(_ count: Int) -> [(CID, [UInt8])] {
      (0..<count).map { number in
        // With a link in it, as a tree node has.
        let link = CID(codec: .dagCBOR, hashing: random.bytes(8).span)
        let body = [0xd8, 0x2a, 0x58, 0x25, 0x00] + link.bytes + random.text(60 + 37 * number)
        return (CID(codec: .dagCBOR, hashing: body.span), body)
      }
    }
    addPack(text(30), level: 3)
    addPack(raw([20, 300, 0, 40_000, 60_000, 90, 50_000, 64, 17]), level: nil)
    let magic = ArchiveMagic.bytes
    let split = [magic + random.bytes(900) + magic + magic, random.bytes(50_000) + magic + [1]]
    addPack(
      raw([500]) + split.map { (CID(codec: .raw, hashing: $0.span), $0) } + raw([2000, 700]),
      level: nil)
    addPack(text(3), level: nil)
    addLarge(random.bytes(140_000), level: nil)
    addLarge(random.text(70_000), level: 3)
    if withSeveralFrames {
      addLarge(random.bytes((4 << 20) + 200_000), level: nil)
      addLarge(random.text((4 << 20) + 90_000), level: 3)
    }
    try archive.addSegment()
    try archive.addFooter()
  }

  private mutating func addPack(_ pack: [(CID, [UInt8])], level: Int?) {
    let start = archive.bytes.count
    archive.addPack(pack, level: level)
    let frame = start..<archive.bytes.count
    var place = 0
    var lengths: [Range<Int>] = []
    for (cid, body) in pack {
      let length = cid.bytes.count + body.count
      let begin = place + Varint.length(of: UInt64(length))
      lengths.append(place..<begin)
      sections.append((cid, body, [Part(frame: frame, content: begin..<begin + length)]))
      place = begin + length
    }
    noteSensitive(frame, lengths)
  }

  private mutating func addLarge(_ body: [UInt8], level: Int?) {
    let cid = CID(codec: .raw, hashing: body.span)
    let section = HandMadeArchive.section(cid, body)
    let prefix = section.count - body.count - cid.bytes.count
    var parts: [Part] = []
    var place = 0
    while place < section.count {
      let size = ArchiveLimits.bodyPerFrame + (place == 0 ? section.count - body.count : 0)
      let content = Array(section[place..<min(section.count, place + size)])
      let start = archive.bytes.count
      archive.addFrame(content, place == 0 ? [cid] : [], level: level)
      let frame = start..<archive.bytes.count
      parts.append(Part(frame: frame, content: (place == 0 ? prefix : 0)..<content.count))
      noteSensitive(frame, place == 0 ? [0..<prefix] : [])
      place += content.count
    }
    sections.append((cid, body, parts))
  }

  private mutating func noteSensitive(_ frame: Range<Int>, _ lengths: [Range<Int>]) {
    let blocks = Self.blocks(of: frame, in: archive.bytes)
    sensitive += frame.prefix(blocks[0].place.lowerBound - frame.lowerBound)
    for block in blocks { sensitive += block.place.lowerBound - 3..<block.place.lowerBound }
    sensitive += frame.suffix(4)
    guard blocks.allSatisfy({ $0.kind == 0 }) else { return }
    sensitive += lengths.flatMap { Self.places(of: $0, in: frame, of: archive.bytes).joined() }
  }

  /// The blocks of a frame: the type of each, and where it lies behind its header.
  private static func blocks(of frame: Range<Int>, in file: [UInt8]) -> [(
    kind: Int, place: Range<Int>
  )] {
    var place =
      frame.lowerBound + [0x24: 6, 0x64: 7, 0xa4: 9][file[frame.lowerBound + 4], default: 0]
    var blocks: [(kind: Int, place: Range<Int>)] = []
    var isLast = false
    while !isLast {
      let header = Int(file[place]) | Int(file[place + 1]) << 8 | Int(file[place + 2]) << 16
      let (kind, start) = (header >> 1 & 3, place + 3)
      blocks.append((kind, start..<start + (kind == 1 ? 1 : header >> 3)))
      isLast = header & 1 == 1
      place = blocks[blocks.count - 1].place.upperBound
    }
    return blocks
  }

  /// Where a part of the content of a raw frame lies in the file.
  private static func places(
    of content: Range<Int>, in frame: Range<Int>, of file: [UInt8]
  ) -> [Range<Int>] {
    var (start, places) = (0, [Range<Int>]())
    for (_, place) in blocks(of: frame, in: file) {
      let part = content.clamped(to: start..<start + place.count)
      if !part.isEmpty {
        places.append(
          place.lowerBound + part.lowerBound - start..<place.lowerBound + part.upperBound - start)
      }
      start += place.count
    }
    return places
  }

  /// Whether a section must come back from a file in which these bytes are others: those of a raw
  /// frame are as they were, and those of a compressed one come before the first error of its
  /// stream.
  func isLeft(
    _ section: (cid: CID, body: [UInt8], parts: [Part]), _ touched: [Int],
    decompressed: (Range<Int>) throws -> [UInt8]
  ) throws -> Bool {
    try section.parts.allSatisfy { part in
      guard touched.contains(where: part.frame.contains) else { return true }
      if Self.blocks(of: part.frame, in: archive.bytes).allSatisfy({ $0.kind == 0 }) {
        return Self.places(of: part.content, in: part.frame, of: archive.bytes)
          .allSatisfy { place in !touched.contains(where: place.contains) }
      }
      // Of several frames each is needed whole.
      guard section.parts.count == 1 else { return false }
      let content = try decompressed(part.frame)
      return content.count >= part.content.upperBound
        && Array(content[part.content]) == section.cid.bytes + section.body
    }
  }

  /// Damages up to three bytes of data frames.
  func damage(_ random: inout SeededGenerator) -> (file: [UInt8], touched: [Int]) {
    var file = archive.bytes
    var touched: [Int] = []
    let frames = Set(sections.flatMap { $0.parts.map(\.frame) })
      .sorted { $0.lowerBound < $1.lowerBound }
    while touched.isEmpty {
      let frame = frames.randomElement(using: &random) ?? 0..<0
      let place = Int.random(in: frame, using: &random)
      let count = Int.random(in: 1...3, using: &random)
      let places =
        switch Int.random(in: 0..<4, using: &random) {
        case 0: Array(place..<min(frame.upperBound, place + count))
        case 1: (0..<count).map { _ in Int.random(in: frame, using: &random) }
        case 2: [sensitive.randomElement(using: &random) ?? place]
        default: (0..<count).map { _ in sensitive.randomElement(using: &random) ?? place }
        }
      for place in places {
        let before = archive.bytes[place]
        file[place] =
          Bool.random(using: &random)
          ? before ^ 1 << UInt8.random(in: 0..<8, using: &random)
          : UInt8.random(in: .min ... .max, using: &random)
      }
      touched = Set(places).filter { file[$0] != archive.bytes[$0] }.sorted()
    }
    return (file, touched)
  }
}

@Suite struct `Inside a damaged frame` {
  /// Reads every section, and compares what comes back with what must.
  private func check(
    _ kinds: FrameKinds, _ file: [UInt8], _ touched: [Int], _ what: String,
    in folder: TemporaryFolder
  ) throws {
    var known: [Int: [UInt8]] = [:]
    func decompressed(_ frame: Range<Int>) throws -> [UInt8] {
      if let content = known[frame.lowerBound] { return content }
      let path = try folder.write("frame.zst", Array(file[frame]))
      let content = try ZstdProgram.decompress(path)
      known[frame.lowerBound] = content
      return content
    }
    let reader = try ArchiveReader(MappedFile(copying: file))
    let surveyed = try ArchiveReader(MappedFile(copying: file)).surveyed()
    for (name, reader) in [("by its index", reader), ("by a survey", surveyed)] {
      for (ordinal, section) in kinds.sections.enumerated() {
        let isLeft = try kinds.isLeft(section, touched, decompressed: decompressed)
        do {
          let body = try reader.body(of: section.cid)
          if body != section.body, body != nil || isLeft {
            Issue.record("\(what), \(name): section \(ordinal) is \(body?.count ?? -1) other bytes")
          }
          if isLeft, try reader.ordinal(of: section.cid) != UInt64(ordinal) {
            Issue.record("\(what), \(name): section \(ordinal) has another number")
          }
        } catch  where isLeft {
          Issue.record("\(what), \(name): section \(ordinal): \(error)")
        } catch {}
      }
    }
    let verification = try reader.verify(workers: 1)
    if verification.isIntact { Issue.record("\(what), and the archive is said to be intact") }
  }

  @Test(arguments: [(false, 240), (true, 12)])
  func `every section comes back of which no byte is damaged`(
    _ withSeveralFrames: Bool, _ count: Int
  ) throws {
    var random = SeededGenerator(printing: 0x1d5_0001 + UInt64(count))
    let kinds = try FrameKinds(withSeveralFrames: withSeveralFrames, seed: random.next())
    let folder = try TemporaryFolder()
    for _ in 0..<count {
      let (file, touched) = kinds.damage(&random)
      try check(kinds, file, touched, "bytes \(touched) damaged", in: folder)
    }
  }

  @Test func `every section comes back that lies outside a page of zeros`() throws {
    var random = SeededGenerator(printing: 0x1d5_0002)
    let kinds = try FrameKinds(withSeveralFrames: true, seed: random.next())
    let folder = try TemporaryFolder()
    for _ in 0..<10 {
      var file = kinds.archive.bytes
      let part = kinds.sections.randomElement(using: &random)?.parts.randomElement(using: &random)
      let frame = try #require(part?.frame)
      let page = (Int.random(in: frame, using: &random) >> 12) << 12
      let touched = (page..<page + 4096).filter { frame.contains($0) && file[$0] != 0 }
      for place in touched { file[place] = 0 }
      guard !touched.isEmpty else { continue }
      try check(kinds, file, touched, "the page at \(page) zeroed", in: folder)
    }
  }

  @Test func `a copy elsewhere stands for a section that is damaged, be it an earlier one`() throws
  {
    var random = SeededGenerator(printing: 0x1d5_0003)
    let bodies = (0..<3).map { _ in random.bytes(2000) }
    let pack = bodies.map { (CID(codec: .raw, hashing: $0.span), $0) }
    for damaged in 0..<2 {
      var archive = HandMadeArchive()
      var starts: [Int] = []
      for _ in 0..<2 {
        starts.append(archive.bytes.count)
        archive.addPack(pack)
      }
      try archive.addSegment()
      try archive.addFooter()
      var file = archive.bytes
      file[starts[damaged] + 3000] ^= 1
      let reader = try ArchiveReader(MappedFile(copying: file))
      for (number, (cid, body)) in pack.enumerated() {
        #expect(try reader.body(of: cid) == body)
        #expect(try reader.section(at: UInt64(number)).cid == cid)
        #expect(try reader.section(at: UInt64(3 + number)).cid == cid)
      }
    }
  }

  @Test func `what is found has its old number, and what is lost has none`() throws {
    var random = SeededGenerator(printing: 0x1d5_0004)
    let pack = (0..<20).map { _ in random.bytes(400) }
      .map { (CID(codec: .raw, hashing: $0.span), $0) }
    var archive = HandMadeArchive()
    let start = archive.bytes.count
    archive.addPack(pack)
    try archive.addSegment()
    try archive.addFooter()
    var file = archive.bytes
    // Four sections, and with them where those begin.
    let section = 2 + 36 + 400
    for place in start + 10 + 3 * section..<start + 10 + 7 * section - 50 { file[place] = 0xee }
    for reader in [
      try ArchiveReader(MappedFile(copying: file)),
      try ArchiveReader(MappedFile(copying: file)).surveyed(),
    ] {
      let found = (0..<20).filter { number in
        (try? reader.section(at: UInt64(number)).cid) == pack[number].0
      }
      #expect(found == [0, 1, 2] + Array(7..<20))
    }
    let verification = try ArchiveReader(MappedFile(copying: file)).verify()
    #expect(verification.damagedOrdinals == [3..<7])
  }

  @Test(.timeLimit(.minutes(1)))
  func `content made of beginnings of sections is searched in bounded time`() throws {
    // Each claims all that follows, and hashes to nothing.
    var random = SeededGenerator(printing: 0x1d5_0005)
    var content: [UInt8] = []
    while content.count < 900_000 {
      var section: [UInt8] = []
      let rest = UInt64(900_000 - content.count)
      Varint.append(max(40, rest), to: &section)
      content += section + [1, 0x55, 0x12, 0x20] + random.bytes(32)
    }
    let remains = FrameRemains(content, size: content.count)
    #expect(remains.foundCount == 0)
    // The same with sections between them that hold.
    content = []
    let small = HandMadeArchive.section(CID(codec: .raw, hashing: [7].span), [7])
    while content.count < 900_000 {
      content += small + [0xa0, 0xa0, 0x36, 1, 0x71, 0x12, 0x20] + random.bytes(32)
    }
    #expect(FrameRemains(content, size: content.count).foundCount > 1)
  }
}
