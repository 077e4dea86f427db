import Archive
import IPLD
import SystemPackage
import TestSupport
import Testing

@Suite struct `A body that is pulled` {
  /// Bodies in packs, in one frame, in several, and compressed ones.
  private static func sample(in folder: TemporaryFolder) throws -> SampleArchive {
    var generator = SeededGenerator()
    func noise(_ count: Int) -> [UInt8] {
      (0..<count).map { _ in .random(in: 0...255, using: &generator) }
    }
    let lines = Array(String(repeating: "the same line again and again\n", count: 400_000).utf8)
    return try SampleArchive(
      in: folder,
      bodies: [[], [7], noise(5000), noise(70_000), noise(400_000), noise(9 << 20), lines])
  }

  private func pull(
    _ reader: ArchiveReader, _ cid: CID, from offset: UInt64, upTo limit: Int
  ) throws -> [UInt8]? {
    guard var cursor = try reader.body(of: cid, from: offset) else { return nil }
    var body: [UInt8] = []
    while true {
      let piece = try cursor.next(upTo: limit) { $0.array }
      guard let piece else { break }
      #expect(!piece.isEmpty && piece.count <= limit)
      body += piece
    }
    #expect(cursor.offset == cursor.length)
    return body
  }

  @Test func `comes whole from any place on, in pieces of any length`() throws {
    let sample = try Self.sample(in: TemporaryFolder())
    let reader = try ArchiveReader(path: sample.path)
    for (cid, body) in sample.sections {
      let count = UInt64(body.count)
      for offset in [0, 1, count / 2, 4 << 20, count - min(count, 3), count, count + 9] {
        for limit in [1000, 65_536, 1 << 30] where count < 1 << 20 || limit > 1000 {
          let found = try pull(reader, cid, from: offset, upTo: limit)
          #expect(found == Array(body.dropFirst(Int(offset))), "\(count) from \(offset)")
        }
      }
    }
    #expect(try pull(reader, CID(codec: .raw, hashing: [9].span), from: 0, upTo: 9) == nil)
  }

  @Test func `ends at a frame that does not hold`() throws {
    let folder = try TemporaryFolder()
    let sample = try Self.sample(in: folder)
    let (cid, body) = sample.sections[5]
    var bytes = try sample.bytes
    // In the second frame of the body.
    let needle = Array(body[5 << 20..<(5 << 20) + 32])
    let place = try #require(
      bytes.indices.first { bytes[$0...].starts(with: needle) })
    bytes[place] ^= 1
    try folder.write("damaged.car.zst", bytes)
    let reader = try ArchiveReader(path: .init(folder.file("damaged.car.zst")))
    var cursor = try #require(try reader.body(of: cid, from: 0))
    var count = 0
    #expect(throws: ArchiveError.self) {
      while let piece = try cursor.next(upTo: 1 << 16, { $0.count }) { count += piece }
    }
    #expect(count == 4 << 20)
  }
}
