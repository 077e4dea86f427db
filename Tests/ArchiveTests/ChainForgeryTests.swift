import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

/// Archives of three generations whose older footers and segments say what cannot be, after
/// checksums that hold.
@Suite struct `A forged chain of generations` {
  private static let numbers: [UInt64] = [
    1 << 20, 1 << 32, 1 << 44, 1 << 61, 1 << 62 - 1, 1 << 62, 1 << 63, .max,
  ]

  private static func sample() throws -> (bytes: [UInt8], generations: [Generation]) {
    let archive = AppendedArchive()
    var random = SeededGenerator(printing: 0xa3)
    for _ in 0..<3 { try archive.append((0..<20).map { _ in random.text(80) }) }
    return (try archive.storage.read(Int(archive.storage.size), at: 0), archive.generations)
  }

  /// The bytes with a number at a place, and right checksums in the frames named.
  private static func forged(
    _ bytes: [UInt8], _ number: UInt64, at place: Int, sealing frame: Range<Int>
  ) -> [UInt8] {
    var forged = bytes
    var word: [UInt8] = []
    word.append(littleEndian: number)
    forged.replaceSubrange(place..<place + 8, with: word)
    word = []
    word.append(littleEndian: XXH64.hash(forged.span.extracting(frame.dropLast(8))))
    forged.replaceSubrange(frame.suffix(8), with: word)
    return forged
  }

  private static func attempt(_ bytes: [UInt8], _ what: Comment) throws {
    let found = try ArchiveReader(MappedFile(copying: bytes)).verify(workers: 1)
    #expect(!found.isIntact, what)
    #expect(try ArchiveReader(MappedFile(copying: bytes)).sectionCount <= UInt64(bytes.count), what)
    let storage = MemoryStorage(bytes)
    _ = try ArchiveRepair.run(storage)
    let repaired = try ArchiveReader(storage.map()).verify(workers: 1)
    #expect(repaired.worst != .interruptedTail, what)
    // What is appended to a file is checked before it counts.
    let copy = MemoryStorage()
    let length = Footer.length(
      atEndOf: Array(bytes.suffix(Footer.maximumLength)), count: UInt64(bytes.count))
    #expect(throws: ArchiveError.self, what) {
      try copy.extend(
        to: UInt64(bytes.count), footerLength: try #require(length)
      ) { offset, count in Array(bytes[Int(offset)..<Int(offset) + count]) }
    }
  }

  @Test func `is found out whatever an older footer counts`() throws {
    let (bytes, generations) = try Self.sample()
    for generation in generations.dropLast() {
      let footer = Int(generation.footerOffset)..<Int(generation.committedLength)
      // Its sections, and the length of the stream.
      for field in [64, 72] {
        for number in Self.numbers {
          let forged = Self.forged(
            bytes, number, at: footer.lowerBound + field, sealing: footer)
          try Self.attempt(forged, "footer \(generation.number): \(number) at \(field)")
        }
      }
    }
  }

  @Test func `is found out wherever an index segment begins`() throws {
    let (bytes, generations) = try Self.sample()
    for generation in generations {
      let start = Int(try #require(generation.segments.last).offset)
      for number in [1 << 20, 1 << 44, 1 << 62 - 1] as [UInt64] {
        let forged = Self.forged(
          bytes, number, at: start + 32, sealing: start..<Int(generation.footerOffset))
        try Self.attempt(forged, "segment of generation \(generation.number): base \(number)")
      }
    }
  }
}
