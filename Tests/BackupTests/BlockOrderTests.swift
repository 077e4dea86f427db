import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `The order of a CAR's sections` {
  private func order(_ positions: [UInt64]) -> BlockOrder {
    var order = BlockOrder()
    for position in positions { order.append(position) }
    return order
  }

  private func encode(_ pairs: (UInt64, UInt64)...) -> [UInt8] {
    var bytes: [UInt8] = []
    for (start, length) in pairs {
      Varint.append(start, to: &bytes)
      Varint.append(length, to: &bytes)
    }
    return bytes
  }

  @Test func `of a CAR that was packed as it came is one run`() {
    let order = order(Array(0..<100_000))
    #expect(order.runs == [0..<100_000])
    #expect(order.count == 100_000)
    #expect(order.encoded == encode((0, 100_000)))
  }

  @Test func `is written as the document says`() {
    // 5, 6, 7, then back to 0, 1, then 100.
    let order = order([5, 6, 7, 0, 1, 100])
    #expect(order.runs == [5..<8, 0..<2, 100..<101])
    #expect(order.encoded == encode((10, 3), (15, 2), (196, 1)))
  }

  @Test func `of nothing is empty`() throws {
    #expect(order([]).encoded == [])
    #expect(try BlockOrder([], limit: 0).count == 0)
  }

  @Test func `comes back whatever it is`() throws {
    var random = SeededGenerator(printing: 0x0bde_0001)
    for _ in 0..<200 {
      let limit = UInt64.random(in: 1...2000, using: &random)
      var positions: [UInt64] = []
      for _ in 0..<Int.random(in: 0...40, using: &random) {
        let start = UInt64.random(in: 0..<limit, using: &random)
        positions += start..<min(limit, start + .random(in: 1...20, using: &random))
      }
      let order = order(positions)
      let again = try BlockOrder(order.encoded, limit: limit)
      #expect(again == order)
      #expect(again.runs.flatMap { Array($0) } == positions)
      #expect(again.count == UInt64(positions.count))
    }
  }

  @Test func `relative to another is the same order, and short if little has changed`() throws {
    var random = SeededGenerator(printing: 0x0bde_0002)
    for _ in 0..<300 {
      func runs(_ count: Int) -> BlockOrder {
        var order = BlockOrder()
        for _ in 0..<count {
          let start = UInt64.random(in: 0..<500, using: &random)
          for position in start..<start + .random(in: 1...40, using: &random) {
            order.append(position)
          }
        }
        return order
      }
      let (base, now) = (
        runs(.random(in: 0...20, using: &random)), runs(.random(in: 0...20, using: &random))
      )
      let (relative, first) = now.relative(to: base)
      #expect(relative.count == now.count)
      let again = try BlockOrder(relative.encoded, limit: base.count + (600 - first))
      #expect(try again.resolved(over: base, first: first) == now)
    }
    // A base that is out of order costs nothing in what comes after it.
    let shuffled = order((0..<2000).map { $0 * 7 % 2000 })
    var positions = shuffled.runs.flatMap { Array($0) }
    positions.remove(at: 700)
    positions.insert(2000, at: 100)
    let next = order(positions)
    let (relative, first) = next.relative(to: shuffled)
    #expect(first == 2000 && relative.runs.count == 4)
    #expect(try relative.resolved(over: shuffled, first: first) == next)
  }

  @Test func `is refused where a position is not in the archive`() {
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder(encode((0, 11)), limit: 10) }
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder(encode((20, 1)), limit: 10) }
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder(encode((1, 1)), limit: 10) }
    #expect(throws: SnapshotError.malformedOrder) {
      try BlockOrder(encode((0, 10), (0, 1)), limit: 10)
    }
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder(encode((0, 1)), limit: 0) }
  }

  @Test func `is refused where a run is empty or cut off`() {
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder(encode((0, 0)), limit: 10) }
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder([0], limit: 10) }
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder([0x80], limit: 10) }
    #expect(throws: SnapshotError.malformedOrder) { try BlockOrder([0, 0x81, 0], limit: 10) }
  }

  @Test func `survives numbers near the end of the world`() {
    let huge = UInt64(Int64.max)
    for limit in [1, 1 << 60, 1 << 63, .max] as [UInt64] {
      for pairs in [
        [(huge - 1, huge)], [(huge, 1)], [(0, huge)], [(0, 1 << 60), (0, 1 << 60), (0, huge)],
        [(0, huge), (0, huge), (0, 1)], [(0, huge), (huge, 1)], [(huge - 1, 1), (huge - 1, huge)],
      ] as [[(UInt64, UInt64)]] {
        var bytes: [UInt8] = []
        for (start, length) in pairs {
          Varint.append(start, to: &bytes)
          Varint.append(length, to: &bytes)
        }
        // Refused or not, it must neither trap nor count wrong.
        if let order = try? BlockOrder(bytes, limit: limit) {
          #expect(order.encoded == bytes)
          _ = order.count
        }
      }
    }
    // Runs over the same positions again and again, so many that their lengths add up to more than
    // a word holds.
    var many: [UInt8] = []
    Varint.append(0, to: &many)
    Varint.append(1 << 62, to: &many)
    for _ in 0..<8 {
      Varint.append((1 << 63) - 1, to: &many)
      Varint.append(1 << 62, to: &many)
    }
    #expect((try? BlockOrder(many, limit: 1 << 62))?.count != 1)
  }

  @Test func `survives any bytes`() {
    var random = SeededGenerator(printing: 0x0bde_0002)
    for _ in 0..<20_000 {
      let bytes = random.bytes(Int.random(in: 0...24, using: &random))
      let limit = random.next() >> UInt64.random(in: 0..<64, using: &random)
      if let order = try? BlockOrder(bytes, limit: limit) {
        #expect(order.runs.allSatisfy { $0.upperBound <= limit && !$0.isEmpty })
      }
    }
  }
}
