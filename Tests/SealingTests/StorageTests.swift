import Archive
import ArchiveTestSupport
import IPLD
import TestSupport
import Testing

@testable import Sealing

/// Lengths around the borders of chunks and of pieces.
private let lengths = [
  0, 1, 2, 100, 65_535, 65_536, 65_537, 131_072, 200_000, SealedStorage.pieceLength - 1,
  SealedStorage.pieceLength, SealedStorage.pieceLength + 1,
]

@Suite struct `A sealed storage` {
  @Test(arguments: lengths + [3 * SealedStorage.pieceLength + 5])
  func `gives back what was written, however long it is`(_ length: Int) throws {
    var random = SeededGenerator(seed: UInt64(length))
    let owner = try Owner()
    let plain = random.bytes(length)
    for piece in [1 << 20, max(1, length)] {
      let bytes = try owner.sealed(plain, piece: piece)
      #expect(try owner.plain(bytes) == plain)
      #expect(try owner.open(SimpleStorage(bytes)).everything() == plain)
    }
  }

  @Test func `behaves as a file does, whatever is done with it in whatever order`() throws {
    for var round in Torture.rounds(8, from: 0x5ea1_0000) {
      let owner = try Owner()
      let file = SimpleStorage()
      var storage = try owner.create(in: file)
      var model: [UInt8] = []
      var log: [String] = []
      for _ in 0..<30 {
        let step = try Self.change(&storage, &model, &round.random)
        log.append(step)
        if round.random.next() % 6 == 0 {
          try round.random.next() % 2 == 0 ? storage.synchronize() : storage.commit()
          storage = try owner.open(file)
          log.append("reopen")
        }
        let size = try storage.size
        #expect(size == UInt64(model.count), "\(round): \(log)")
        let start = Int.random(in: 0...model.count, using: &round.random)
        let end = Int.random(in: start...min(model.count, start + 100_000), using: &round.random)
        let isSame = try storage.read(end - start, at: UInt64(start)) == Array(model[start..<end])
        #expect(isSame, "\(round): \(log)")
      }
      try storage.commit()
      let isSame = try owner.plain(file.bytes) == model
      #expect(isSame, "\(round): \(log)")
      #expect(try SealedCheck(MappedFile(copying: file.bytes)).flaws == [], "\(round): \(log)")
    }
  }

  private static func change(
    _ storage: inout any ArchiveStorage, _ model: inout [UInt8], _ random: inout SeededGenerator
  ) throws -> String {
    let length = Int.random(in: 0...(lengths.randomElement(using: &random) ?? 0), using: &random)
    switch random.next() % 10 {
    case 0...3:
      let bytes = random.bytes(length)
      try storage.write(bytes.span, at: UInt64(model.count))
      model += bytes
      return "append \(length)"
    case 4...5:
      let bytes = random.bytes(length)
      let start = Int.random(in: 0...model.count, using: &random)
      try storage.write(bytes.span, at: UInt64(start))
      model.replaceSubrange(start..<min(start + length, model.count), with: bytes)
      return "write \(length) at \(start)"
    case 6:
      let size = Int.random(in: max(0, model.count - length)...model.count, using: &random)
      try storage.truncate(to: UInt64(size))
      model.removeLast(model.count - size)
      return "cut to \(size)"
    case 7:
      try storage.synchronize()
      return "synchronize"
    case 8:
      let map = try storage.map()
      let isSame = map.withBytes { $0.array(0..<map.count) } == model
      #expect(isSame)
      return "map"
    default:
      try storage.commit()
      return "commit"
    }
  }

  @Test(arguments: [(0, 3), (1, 4), (3, 3), (4, 2), (5, 1), (11, 1), (12, 0)])
  func `is cut within pieces and between them`(_ size: Int, _ more: Int) throws {
    let owner = try Owner()
    let plain = [UInt8](0..<12)
    let file = SimpleStorage(try owner.sealed(plain, piece: 4, committing: 1))
    let storage = try owner.open(file)
    try storage.truncate(to: UInt64(size))
    #expect(try storage.everything() == Array(plain[..<size]))
    let tail = [UInt8](repeating: 77, count: more)
    try storage.write(tail.span, at: UInt64(size))
    try storage.commit()
    #expect(try owner.plain(file.bytes) == plain[..<size] + tail)
    #expect(try SealedCheck(MappedFile(copying: file.bytes)).flaws == [])
  }

  @Test func `writes nothing beyond the end`() throws {
    let storage = try Owner().create(in: SimpleStorage())
    #expect(throws: ArchiveError(.changedMeanwhile)) { try storage.write([1].span, at: 1) }
  }

  @Test func `goes on when a write has failed`() throws {
    let owner = try Owner()
    for number in 1...12 {
      let file = MemoryStorage(try owner.sealed([UInt8](0..<12), piece: 4, committing: 2))
      let storage = try owner.open(file)
      file.conditions = .init([
        StorageFault(
          file.count(of: [.write, .synchronize, .truncate]) + number,
          of: [.write, .synchronize, .truncate], part: 0.6)
      ])
      var model = try storage.everything()
      // What has failed is done again.
      func stubbornly(_ body: () throws -> Void) throws {
        do { try body() } catch is ArchiveError { try body() }
      }
      try stubbornly { try storage.write([90, 91, 92].span, at: 6) }
      model.replaceSubrange(6..<9, with: [90, 91, 92])
      try stubbornly { try storage.write([7, 8].span, at: 11) }
      model.replaceSubrange(11..<12, with: [7, 8])
      try stubbornly { try storage.commit() }
      #expect(try owner.plain(file.bytes) == model, "operation \(number)")
      #expect(try SealedCheck(MappedFile(copying: file.bytes)).flaws == [], "operation \(number)")
    }
  }
}
