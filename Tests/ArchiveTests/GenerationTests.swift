import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Archive

@Suite struct `The chain of generations` {
  /// Five generations of a section each; the second and the third write nothing.
  private static func sample() throws -> (archive: HandMadeArchive, generations: [Generation]) {
    var archive = HandMadeArchive()
    var generations: [Generation] = []
    for number in 0..<5 {
      if number != 1, number != 2 {
        let body = [UInt8](repeating: UInt8(number), count: 100)
        archive.addPack([(CID(codec: .raw, hashing: body.span), body)])
        try archive.addSegment()
      }
      try archive.addFooter()
      generations.append(try #require(archive.generation))
    }
    return (archive, generations)
  }

  private static func walk(_ reader: ArchiveReader) -> (found: [Generation], failure: ArchiveError?)
  {
    var found: [Generation] = []
    do throws(ArchiveError) {
      try reader.forEachGeneration {
        found.append($0)
        return true
      }
    } catch {
      return (found, error)
    }
    return (found, nil)
  }

  @Test func `is walked from the newest back to the first`() throws {
    let (archive, generations) = try Self.sample()
    let (found, failure) = Self.walk(try archive.open(in: TemporaryFolder()))
    #expect(failure == nil)
    #expect(found == generations.reversed())
  }

  @Test func `is empty where there is no footer`() throws {
    var archive = HandMadeArchive()
    archive.addPack([(CID(codec: .raw, hashing: [1].span), [1])])
    let reader = try archive.open(in: TemporaryFolder())
    #expect(reader.generation.number == 0)
    let (found, failure) = Self.walk(reader)
    #expect(found.isEmpty && failure == nil)
  }

  @Test func `ends at a footer that is damaged, and says so`() throws {
    let (archive, generations) = try Self.sample()
    for broken in 0..<4 {
      let footer = Int(generations[broken].footerOffset)
      for place in [footer, footer + 30, footer + 50, footer + 100, footer + 160] {
        var bytes = archive.bytes
        bytes[place] ^= 0xff
        let (found, failure) = Self.walk(try Self.open(bytes))
        #expect(found == generations[(broken + 1)...].reversed())
        #expect(failure?.offset == generations[broken].footerOffset)
      }
    }
  }

  @Test func `ends at a footer that cannot come before the one that names it`() throws {
    let (archive, generations) = try Self.sample()
    let last = try #require(generations.last)
    func footer(
      number: UInt64? = nil, previous: UInt64? = nil, segments: Int = 3, streamLength: UInt64? = nil
    ) -> Generation {
      Generation(
        number: number ?? last.number + 1, footerOffset: UInt64(archive.bytes.count),
        previousFooterOffset: previous ?? last.footerOffset, committedLength: 0,
        sectionCount: UInt64(segments), streamLength: streamLength ?? last.streamLength, head: nil,
        segments: Array(last.segments.prefix(segments)))
    }
    func walk(_ footer: Generation) throws -> (found: [Generation], failure: ArchiveError?) {
      Self.walk(try Self.open(archive.bytes + Footer.encode(footer)))
    }
    let honest = try walk(footer())
    #expect(honest.found.count == 6 && honest.failure == nil)
    // One generation left out, a number that is another, places where no footer begins, less than
    // there was before.
    for forged in [
      footer(previous: generations[3].footerOffset), footer(number: 9), footer(previous: 10),
      footer(previous: last.footerOffset + 1), footer(segments: 2), footer(streamLength: 1),
    ] {
      let (found, failure) = try walk(forged)
      #expect(found.map(\.number) == [forged.number])
      #expect(failure != nil)
    }
  }

  private static func open(_ bytes: [UInt8]) throws -> ArchiveReader {
    let folder = try TemporaryFolder()
    return try ArchiveReader(path: FilePath(folder.write("archive", bytes)))
  }
}
