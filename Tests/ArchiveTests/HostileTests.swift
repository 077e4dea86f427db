import Archive
import IPLD
import SystemPackage
import TestSupport
import Testing

/// An archive whose index and footer can be changed and given right checksums again: what a forger
/// can do.
struct Forgery {
  let sample: SampleArchive
  let bytes: [UInt8]
  let generation: Generation
  let file: FileDescriptor

  init(in folder: TemporaryFolder, name: String) throws {
    var random = SeededGenerator(printing: 0xf026e)
    sample = try SampleArchive(
      in: folder, name: name,
      bodies: (0..<60).map { _ in random.text(50) } + [random.text(66_000), random.bytes(200)],
      manifest: random.text(30))
    bytes = try sample.bytes
    generation = try #require(sample.generation)
    file = try FileDescriptor.open(sample.path, .readWrite)
  }

  /// Where the index segment lies.
  var segment: Range<Int> { Int(generation.segments[0].offset)..<footer.lowerBound }
  /// Where the footer lies.
  var footer: Range<Int> { Int(generation.footerOffset)..<bytes.count }

  /// The file with these changes, and checksums that hold.
  func forged(_ change: (inout [UInt8]) -> Void) -> [UInt8] {
    var forged = bytes
    change(&forged)
    seal(&forged, segment)
    // The footer names the segment's checksum; a change of that field itself is left as it is.
    let named = footer.lowerBound + 128 + 16
    if Array(forged[named..<named + 8]) == Array(bytes[named..<named + 8]) {
      forged.replaceSubrange(
        named..<named + 8, with: forged[segment.upperBound - 8..<segment.upperBound])
    }
    seal(&forged, footer)
    return forged
  }

  private func seal(_ bytes: inout [UInt8], _ frame: Range<Int>) {
    let body = Array(bytes[frame.lowerBound..<frame.upperBound - 8])
    var checksum: [UInt8] = []
    checksum.append(littleEndian: XXH64.hash(body.span))
    bytes.replaceSubrange(frame.upperBound - 8..<frame.upperBound, with: checksum)
  }

  /// Opens, reads and verifies the file with these bytes: nothing may crash, and no wrong body come
  /// back.
  ///
  /// - Returns: What verifying said; nil if the file was refused.
  @discardableResult
  func attempt(_ forged: [UInt8], _ what: String) throws -> ArchiveVerification? {
    try file.resize(to: Int64(forged.count))
    try file.writeAll(toAbsoluteOffset: 0, forged)
    do {
      let reader = try ArchiveReader(path: sample.path)
      for (cid, body) in sample.sections {
        do {
          if let stored = try reader.body(of: cid), stored != body {
            Issue.record("\(what): \(cid) comes back as \(stored.count) other bytes")
          }
        } catch is ArchiveError {}
      }
      do {
        try reader.copySections([0..<min(reader.generation.sectionCount, 100)]) { _ in }
      } catch is ArchiveError {}
      do {
        try reader.forEachSection(begin: { _ in true }, chunk: { _ in })
      } catch is ArchiveError {}
      return try reader.verify(workers: 1)
    } catch is ArchiveError {
      return nil
    }
  }
}

@Suite struct `A forged archive` {
  @Test func `is found out whichever byte of its index is changed`() throws {
    let forgery = try Forgery(in: try TemporaryFolder(), name: "segment")
    #expect(try forgery.attempt(forgery.forged { _ in }, "unchanged")?.findings == [])
    for place in forgery.segment.dropLast(8) {
      for value: UInt8 in [0x00, 0x01, 0x7f, 0x80, 0xff] where value != forgery.bytes[place] {
        let what = "byte \(place - forgery.segment.lowerBound) of the segment is \(value)"
        let found = try forgery.attempt(forgery.forged { $0[place] = value }, what)
        if found?.isIntact == true { Issue.record("\(what), and the archive is said to be fine") }
      }
    }
  }

  @Test(arguments: [false, true], [1, 30, 1 << 31] as [UInt32])
  func `is found out if no frame has its first sections`(_ isRepaired: Bool, _ shift: UInt32)
    throws
  {
    let forgery = try Forgery(in: try TemporaryFolder(), name: "shifted")
    let forged = forgery.forged { bytes in
      if isRepaired { bytes[forgery.footer.lowerBound + 32] |= 1 }
      // Every entry of the table in front of the checksum, which counts its ordinals from the base.
      let count = Int(bytes.span.u32(forgery.segment.lowerBound + 44))
      for number in 1...count {
        let place = forgery.segment.upperBound - 8 - 24 * number + 16
        var word: [UInt8] = []
        word.append(littleEndian: bytes.span.u32(place) &+ shift)
        bytes.replaceSubrange(place..<place + 4, with: word)
      }
    }
    let found = try forgery.attempt(forged, "ordinals are higher by \(shift)")
    #expect(found?.isIntact == false)
  }

  @Test func `is found out whichever byte of its footer is changed`() throws {
    let forgery = try Forgery(in: try TemporaryFolder(), name: "footer")
    for place in forgery.footer.dropLast(8) {
      let field = place - forgery.footer.lowerBound
      // The minor version and optional features are for later versions to set, and of the required
      // ones the first is known.
      let isFree = field == 30 || field == 31 || (40..<48).contains(field)
      for value: UInt8 in [0x00, 0x01, 0x7f, 0x80, 0xff] where value != forgery.bytes[place] {
        let what = "byte \(field) of the footer is \(value)"
        let found = try forgery.attempt(forgery.forged { $0[place] = value }, what)
        if field == 32, value == 0x01 { continue }
        if !isFree, found?.isIntact == true {
          Issue.record("\(what), and the archive is said to be fine")
        }
        if isFree, found?.isIntact != true { Issue.record("\(what), and that is held against it") }
      }
    }
  }

  @Test func `is refused if it needs what is unknown here, by name`() throws {
    let forgery = try Forgery(in: try TemporaryFolder(), name: "features")
    func reason(_ change: (inout [UInt8]) -> Void) throws -> ArchiveError? {
      let forged = forgery.forged(change)
      try forgery.file.writeAll(toAbsoluteOffset: 0, forged)
      do {
        _ = try ArchiveReader(path: forgery.sample.path)
        return nil
      } catch {
        return error as? ArchiveError
      }
    }
    let start = forgery.footer.lowerBound
    let place = UInt64(start)
    let version = try reason { $0[start + 28] = 2 }
    #expect(version == ArchiveError(.unsupportedVersion(2), offset: place))
    let bit = try reason { $0[start + 32] = 8 }
    #expect(bit == ArchiveError(.unknownFeatures(8), offset: place))
    #expect(bit?.description.contains("feature bit 3") == true)
    let bits = try reason { $0[start + 39] = 0x81 }
    #expect(bits?.description.contains("feature bits 56 and 63") == true)
    #expect(try reason { $0[start + 40] = 0xff } == nil)
    #expect(try reason { $0[start + 30] = 9 } == nil)
  }

  @Test func `with impossible numbers everywhere is refused or read around`() throws {
    let forgery = try Forgery(in: try TemporaryFolder(), name: "numbers")
    var random = SeededGenerator(printing: 0x41b)
    let numbers: [UInt64] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 62, 1 << 63, .max]
    for round in 0..<3000 {
      let forged = forgery.forged { bytes in
        for _ in 0..<1 + random.next() % 3 {
          let number = random.next() % 3 == 0 ? random.next() : numbers[Int(random.next() % 8)]
          let region = random.next() % 2 == 0 ? forgery.segment : forgery.footer
          let place =
            region.lowerBound + 28 + 4 * Int(random.next() % UInt64((region.count - 44) / 4))
          for index in 0..<(random.next() % 2 == 0 ? 4 : 8) {
            bytes[place + index] = UInt8(truncatingIfNeeded: number >> (8 * UInt64(index)))
          }
        }
      }
      try forgery.attempt(forged, "round \(round)")
    }
  }

  @Test func `of random damage, or made of pieces of itself, never crashes`() throws {
    let forgery = try Forgery(in: try TemporaryFolder(), name: "random")
    var random = SeededGenerator(printing: 0x0dd)
    for round in 0..<3000 {
      var bytes = forgery.bytes
      for _ in 0..<1 + random.next() % 4 {
        let place = Int(random.next() % UInt64(bytes.count))
        let other = Int(random.next() % UInt64(bytes.count))
        let length = min(Int(random.next() % 900), bytes.count - max(place, other))
        switch random.next() % 5 {
        case 0: bytes.replaceSubrange(place..<place + length, with: bytes[other..<other + length])
        case 1: bytes.insert(contentsOf: bytes[other..<other + length], at: place)
        case 2: bytes.removeSubrange(place..<place + length)
        case 3: bytes.replaceSubrange(place..<place + length, with: random.bytes(length))
        default: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        }
      }
      if bytes == forgery.bytes { continue }
      let found = try forgery.attempt(bytes, "round \(round)")
      // What is appended is a tail, and everything else is damage.
      if found?.isIntact == true { Issue.record("round \(round): the archive is said to be fine") }
    }
  }

  @Test func `of zstd frames that are not in the one form is refused`() throws {
    func reads(_ bytes: [UInt8]) -> Bool {
      (try? DataFrame(bytes.span, at: 0, limit: bytes.count)) != nil
    }
    var good: [UInt8] = []
    DataFrame.appendRaw([1, 2, 3].span, to: &good)
    #expect(reads(good))
    for length in good.indices { #expect(!reads(Array(good[..<length]))) }
    // No checksum, a window, a dictionary, an unused bit, another size field.
    for descriptor: UInt8 in [0x20, 0x04, 0x25, 0x2c, 0x34, 0x64, 0xa4, 0xe4, 0x44] {
      var bad = good
      bad[4] = descriptor
      #expect(!reads(bad + good))
    }
    // Sizes: none, one that is not minimal, more than there may be.
    let header: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]
    #expect(!reads(header + [0x24, 0, 1, 0, 0, 0, 0, 0, 0]))
    #expect(!reads(header + [0xa4, 3, 0, 0, 0, 25, 0, 0, 1, 2, 3] + good.suffix(4)))
    #expect(!reads(header + [0xa4, 0xff, 0xff, 0xff, 0xff, 25, 0, 0, 1, 2, 3] + good.suffix(4)))
    #expect(!reads(header + [0xa4, 0xed, 0x07, 0x40, 0x00, 25, 0, 0, 1, 2, 3] + good.suffix(4)))
    // Blocks: of the reserved kind, longer than there are, empty ones without end.
    var reserved = good
    reserved[6] |= 6
    #expect(!reads(reserved))
    #expect(!reads(header + [0x24, 3, 26, 0, 0, 1, 2, 3, 4] + good.suffix(4)))
    #expect(!reads(header + [0x24, 3] + [UInt8](repeating: 0, count: 3_000_000)))
    // An RLE block that claims 128 KiB of a content of three bytes is a frame that does not
    // decompress.
    let bomb = header + [0x24, 3, 0x03, 0x00, 0x10, 7] + good.suffix(4)
    #expect(reads(bomb))
    #expect(ZstdDecompressor().decompress(bomb.span, size: 3) == nil)
  }

  @Test func `that is no archive at all is called that`() throws {
    let folder = try TemporaryFolder()
    var random = SeededGenerator(printing: 0x90)
    let path = FilePath(folder.file("other"))
    var frames: [UInt8] = []
    for _ in 0..<2000 { DataFrame.appendRaw(random.bytes(20).span, to: &frames) }
    // Among them frame headers all over, each of which could be the one to resume at.
    let headers = Array(
      repeatElement([0x28, 0xb5, 0x2f, 0xfd, 0xa4, 0, 0, 0x40, 0] as [UInt8], count: 50_000)
        .joined())
    let magic = Array(
      repeatElement([0x5c, 0x2a, 0x4d, 0x18, 0xff, 0, 0, 0] + ArchiveMagic.bytes, count: 10_000)
        .joined())
    for bytes in [
      [], [1], random.bytes(167), random.bytes(168), random.bytes(100_000), headers, magic,
    ] {
      let file = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
      try file.closeAfter { _ = try file.writeAll(bytes) }
      #expect(throws: ArchiveError(.notAnArchive)) { try ArchiveReader(path: path) }
    }
    #expect(throws: (any Error).self) { try ArchiveReader(path: FilePath(folder.file("absent"))) }
  }
}
