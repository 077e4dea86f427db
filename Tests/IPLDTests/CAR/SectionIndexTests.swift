import TestSupport
import Testing

@testable import IPLD

@Suite struct `An index of the sections of a CAR` {
  private func car(_ blocks: [Block]) -> [UInt8] {
    var bytes = CARHeader(roots: []).bytes
    for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
    return bytes
  }

  private func index(_ car: [UInt8]) throws -> SectionIndex {
    try SectionIndex(car.span, header: CARHeader(car.span), payload: 0..<car.count)
  }

  @Test func `finds every block, the first of those that are repeated, and no other`() throws {
    for count in [0, 1, 2, 3, 100, 5000] {
      let blocks = (0..<count).map { number in
        let bytes = Array("block \(number)".utf8)
        return Block(
          cid: CID(codec: number % 3 == 0 ? .raw : .dagCBOR, hashing: bytes.span), bytes: bytes)
      }
      let car = car(blocks + blocks)
      let index = try index(car)
      #expect(index.sectionCount == 2 * count)
      #expect(index.hasRaw == (count > 0))
      var slots: Set<Int> = []
      for block in blocks {
        let found = index.slot(of: block.cid, in: car.span)
        let slot = try #require(found)
        slots.insert(slot)
        let section = index.section(slot, in: car.span)
        #expect(Array(car[section.bodyRange]) == block.bytes)
        #expect(Array(car[section.cidRange]) == block.cid.bytes)
        #expect(section.end <= (CARHeader(roots: []).length + car.count) / 2, "the first of two")
        // The same digest with another codec is another block.
        let other = CID(
          codec: block.cid.codec == .raw ? .dagCBOR : .raw, hashing: block.bytes.span)
        let otherSlot = index.slot(of: other, in: car.span)
        #expect(otherSlot == nil)
      }
      #expect(slots.count == count)
      let absent = index.slot(of: CID(codec: .raw, hashing: [0xff].span), in: car.span)
      #expect(absent == nil)
    }
  }

  @Test func `counts blocks under other CIDs and keeps nothing of them`() throws {
    let odd = try CID([1, 0x55, 0x1e, 4, 1, 2, 3, 4].span)
    let blocks = (0..<1000).map { _ in Block(cid: odd, bytes: []) }
    let car = car(blocks)
    let index = try index(car)
    #expect(index.sectionCount == 1000)
    #expect(index.slotCount == 1)
    let slot = index.slot(of: odd, in: car.span)
    #expect(slot == nil)
  }

  @Test func `is not made of sections that are malformed`() throws {
    let block = Block(cid: CID(codec: .raw, hashing: [1, 2, 3].span), bytes: [1, 2, 3])
    let whole = car([block, block])
    #expect(throws: CARError.self) { try index(Array(whole.dropLast())) }
    #expect(throws: CARError.self) { try index(whole + [0x00]) }
  }
}
