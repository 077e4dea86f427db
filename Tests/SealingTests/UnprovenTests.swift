import Age
import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// What is decrypted of chunks that do not open.
@Suite struct `A chunk of a sealed archive that does not open` {
  private let owner: Owner
  private let plain, sealed: [UInt8]
  private let sections: [CID]

  init() throws {
    var random = SeededGenerator(printing: 0x5ea9_2000)
    owner = try Owner()
    // A blob larger than a chunk, and many small ones.
    let steps = [200_000, 900, 900, 30_000, 900].map { BackupStep.one($0, using: &random) }
    plain = try plainArchive(steps)
    sealed = try owner.sealed(plain)
    let reader = try ArchiveReader(MappedFile(copying: plain))
    sections = try (0..<reader.sectionLimit).map { try reader.section(at: $0).cid }
  }

  /// Which sections can be read.
  private func read(_ file: MappedFile) throws -> [CID] {
    let reader = try ArchiveReader(file)
    return sections.filter { cid in
      // An error here says only that it cannot.
      guard let body = try? reader.body(of: cid) else { return false }
      return cid.verify(body.span) == .matches
    }
  }

  /// Where the chunks of the only piece lie.
  private func chunks() throws -> [Range<Int>] {
    let layout = try SealedLayout(
      MappedFile(copying: sealed), owner.archiveIdentity(sealed))
    let piece = layout.pieces[0]
    return (0..<piece.chunks.count).map { number in
      let chunk = piece.chunks.sealedRange(of: number)
      return piece.payloadOffset + chunk.lowerBound..<piece.payloadOffset + chunk.upperBound
    }
  }

  @Test func `costs nothing where its tag alone is damaged, and is damage all the same`() throws {
    // Index and footer are in the last one, and are not taken from what nothing proves.
    for chunk in try chunks().dropLast() {
      var bytes = sealed
      bytes[chunk.upperBound - 3] ^= 8
      #expect(try read(owner.map(bytes)) == sections)
      #expect(try owner.verification(bytes)?.worst == .damaged)
      // As it is read otherwise, nothing of it is there.
      let start = try chunks()[0].lowerBound
      let number = (chunk.lowerBound - start) / chunk.count
      let content = try owner.plain(bytes)
      let place = number * AgePayload.chunkLength
      #expect(content[place..<place + AgePayload.chunkLength].allSatisfy { $0 == 0 })
    }
    var last = sealed
    last[try #require(chunks().last).upperBound - 3] ^= 8
    #expect(try owner.verification(last)?.isIntact != true)
  }

  @Test func `costs for one bit what that costs in a plain archive`() throws {
    var random = SeededGenerator(printing: 0x5ea9_2001)
    let chunks = try chunks()
    for _ in 0..<40 {
      let number = Int.random(in: 0..<chunks.count - 1, using: &random)
      let offset = Int.random(in: 0..<AgePayload.chunkLength, using: &random)
      let bit: UInt8 = 1 << UInt8.random(in: 0..<8, using: &random)
      var (flippedPlain, flippedSealed) = (plain, sealed)
      flippedPlain[number * AgePayload.chunkLength + offset] ^= bit
      flippedSealed[chunks[number].lowerBound + offset] ^= bit
      let inPlain = try read(MappedFile(copying: flippedPlain))
      let inSealed = try read(owner.map(flippedSealed))
      #expect(inSealed == inPlain, "\(offset) of chunk \(number)")
      #expect(inSealed.count >= sections.count - 1)
    }
  }
}
