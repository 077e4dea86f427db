import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// What a table describes was committed.
///
/// Where it cannot be decrypted it is damage, and never the rest of a write that was not finished.
@Suite struct `The end of a sealed archive that is damaged` {
  private let owner: Owner
  private let whole: [UInt8]
  private let header: [UInt8]
  private let sections: [CID]

  init() throws {
    var random = SeededGenerator(printing: 0x5ea9_1000)
    owner = try Owner()
    let steps = (0..<3).map { _ in BackupStep.one(150_000, using: &random) }
    let plain = try plainArchive(steps)
    whole = try owner.sealed(plain)
    let reader = try ArchiveReader(MappedFile(copying: plain))
    header = try reader.carHeader
    sections = try Self.sections(of: MappedFile(copying: plain))
  }

  /// Everything that can be read of an archive, wherever it lies.
  private static func sections(of file: MappedFile) throws -> [CID] {
    let reader = try ArchiveReader(file).surveyed()
    return try (0..<reader.sectionLimit).map { try reader.section(at: $0).cid }
  }

  /// Where the last piece lies.
  private static func lastPiece(of bytes: [UInt8]) throws -> Range<Int> {
    try #require(
      SealedFile.places(bytes).last { SealedFrame(bytes.span, at: $0.lowerBound)?.kind == .piece })
  }

  /// How far before the end of the last piece a bit is flipped.
  private static let distances = [40, 300, 3000]

  private func flipped(_ bytes: [UInt8], _ distance: Int) throws -> (bytes: [UInt8], place: Int) {
    let place = try Self.lastPiece(of: bytes).upperBound - distance
    var damaged = bytes
    damaged[place] ^= 1
    return (damaged, place)
  }

  @Test(arguments: distances) func `is left alone by whoever does not go behind it`(
    _ distance: Int
  ) throws {
    let damaged = try flipped(whole, distance).bytes
    let file = SimpleStorage(damaged)
    let error = #expect(throws: ArchiveError.self) {
      _ = try ArchiveWriter.reopen(owner.open(file))
    }
    #expect(error?.reason == .damagedEnd)
    #expect(throws: ArchiveError.self) { try owner.open(file).truncate(to: 1) }
    #expect(file.bytes == damaged)
    // Whole, it is cut off where the writer says.
    let other = SimpleStorage(whole)
    try owner.open(other).truncate(to: 1)
    #expect(other.bytes.count < whole.count)
  }

  @Test(arguments: distances) func `stays what it is, and a backup goes behind it`(
    _ distance: Int
  ) throws {
    let (damaged, place) = try flipped(whole, distance)
    let end = try Self.lastPiece(of: damaged).upperBound
    let file = SimpleStorage(damaged)
    var options = ArchiveOptions()
    options.appendsBehindDamage = true
    let body = Array("what came later".utf8)
    let cid = CID(codec: .raw, hashing: body.span)
    for round in 0..<2 {
      var writer = try ArchiveWriter.open(owner.open(file), carHeader: header, options: options)
      #expect(writer.isBehindDamage == (round == 0))
      try writer.append(cid, body.span)
      if round == 0 { try writer.checkpoint() } else { try writer.abandon() }
    }
    #expect(file.bytes[..<end] == damaged[..<end])
    let reader = try ArchiveReader(owner.map(file.bytes))
    #expect(try reader.body(of: cid) == body)
    #expect(try reader.verify().worst == .damaged)
    // Should the bit be put right, all of it is there again.
    var mended = file.bytes
    mended[place] ^= 1
    let found = Set(try Self.sections(of: owner.map(mended)))
    #expect(found.isSuperset(of: sections) && found.contains(cid))
  }

  @Test(arguments: distances) func `is healed from parity before a writer looks at it`(
    _ distance: Int
  ) throws {
    let protected = SimpleStorage(whole)
    _ = try owner.open(protected).protect(percent: 10)
    let file = SimpleStorage(try flipped(protected.bytes, distance).bytes)
    var writer = try ArchiveWriter.reopen(owner.open(file))
    try writer.abandon()
    #expect(file.bytes == protected.bytes)
  }

  @Test func `does not keep parity from being changed where an unfinished write follows it`() throws
  {
    let file = SimpleStorage(whole)
    _ = try owner.open(file).protect(percent: 10)
    let more = SimpleStorage(file.bytes + [UInt8](repeating: 0, count: 400_000))
    _ = try owner.open(more).protect(percent: 20)
    #expect(try ArchiveReader(owner.map(more.bytes)).verify().isIntact)
  }
}
