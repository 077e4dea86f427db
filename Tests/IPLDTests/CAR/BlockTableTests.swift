import IPLD
import TestSupport
import Testing

@Suite struct `A table of blocks` {
  /// The table of a CAR's blocks, with the result of each insertion.
  private func table(of bytes: [UInt8]) throws -> (BlockTable, isNew: [Bool]) {
    var table = BlockTable()
    var isNew: [Bool] = []
    var cursor = CARCursor(header: try CARHeader(bytes.span), payload: 0..<bytes.count)
    while let (section, cid) = try cursor.next(in: bytes.span) {
      isNew.append(table.insert(section, cid, in: bytes.span).isNew)
    }
    return (table, isNew)
  }

  private func car(_ blocks: [Block]) -> [UInt8] {
    var bytes = CARHeader(roots: []).bytes
    for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
    return bytes
  }

  /// Checks that the table has these blocks, each in a place of its own, and no others.
  private func expect(_ table: BlockTable, _ bytes: [UInt8], has blocks: [Block]) {
    #expect(table.count == blocks.count)
    #expect((0..<table.placeCount).count { table.isUsed($0) } == blocks.count)
    var places: Set<Int> = []
    for (index, block) in blocks.enumerated() {
      guard let place = table.place(of: block.cid, in: bytes.span), table.isUsed(place),
        places.insert(place).inserted, table.cid(place, in: bytes.span) == block.cid,
        Array(bytes[table.body(place, in: bytes.span)]) == block.bytes,
        Array(bytes[table.section(place, in: bytes.span).bodyRange]) == block.bytes
      else {
        Issue.record("block \(index), \(block.cid)")
        return
      }
    }
  }

  @Test func `finds every block by its CID`() throws {
    let (table, isNew) = try table(of: SampleCAR.version1)
    expect(table, SampleCAR.version1, has: SampleCAR.blocks)
    #expect(!isNew.contains(false))
  }

  @Test func `is empty before anything is inserted`() {
    let table = BlockTable()
    #expect(table.count == 0)
    let bytes = SampleCAR.version1
    for block in SampleCAR.blocks {
      let place = table.place(of: block.cid, in: bytes.span)
      #expect(place == nil)
    }
  }

  @Test func `keeps the first of those with the same CID`() throws {
    let (first, second) = (SampleCAR.blocks[0], SampleCAR.blocks[1])
    let impostor = Block(cid: first.cid, bytes: [9, 9, 9])
    let bytes = car([first, second, impostor, second, first])
    let (table, isNew) = try table(of: bytes)
    expect(table, bytes, has: [first, second])
    #expect(isNew == [true, true, false, false, false])
  }

  /// What cannot be verified must not be found in the place of what can.
  @Test func `tells apart CIDs that have only their digest in common`() throws {
    let digest = SHA256.digest(of: [1].span)
    let functions: [UInt64] = [0x12, 0x13, 0x16, 0x1e, 0x00, 0x7f]
    let codecs: [UInt64] = [0x55, 0x71, 0x70, 0x00, 0x7f, 0x80, 0xf1, 1 << 62]
    var blocks: [Block] = []
    for function in functions {
      let multihash = Multihash(
        function: HashFunction(rawValue: function), digest: digest.bytes)
      for codec in codecs {
        let cid = CID(codec: Codec(rawValue: codec), multihash: multihash)
        blocks.append(Block(cid: cid, bytes: [UInt8(blocks.count)]))
      }
    }
    // A codec of two bytes and a digest of 31 make the same length as a codec of one and a digest
    // of 32.
    let short = Multihash(function: .sha256, digest: Array(digest.bytes.dropFirst()))
    let cid = CID(codec: Codec(rawValue: 0x80), multihash: short)
    #expect(cid.bytes.count == 36)
    blocks.append(Block(cid: cid, bytes: []))
    blocks.append(SampleCAR.blocks[4])
    #expect(blocks.last?.cid.version == .v0)
    for blocks in [blocks, blocks.reversed()] {
      let bytes = car(blocks)
      expect(try table(of: bytes).0, bytes, has: blocks)
    }
  }

  @Test func `does not find the CID of SHA-256 among all others with its digest`() throws {
    // Which of them lie where it would is a matter of chance, so there are many.
    for number in 0..<50 {
      let digest = SHA256.digest(of: [UInt8(number)].span)
      let others = (UInt64(0)..<128).filter { $0 != HashFunction.sha256.rawValue }.map {
        let multihash = Multihash(function: HashFunction(rawValue: $0), digest: digest.bytes)
        return Block(cid: CID(codec: .raw, multihash: multihash), bytes: [6, 6, 6])
      }
      let bytes = car(others)
      let (table, _) = try table(of: bytes)
      let place = table.place(of: CID(codec: .raw, digest: digest), in: bytes.span)
      #expect(place == nil)
    }
  }

  @Test func `keeps marks, also when it grows`() throws {
    let blocks = (0..<5000).map { number in
      let body = Array("block \(number)".utf8)
      return Block(cid: CID(codec: .raw, hashing: body.span), bytes: body)
    }
    let bytes = car(blocks)
    var table = BlockTable()
    var cursor = CARCursor(header: try CARHeader(bytes.span), payload: 0..<bytes.count)
    var number = 0
    while let (section, cid) = try cursor.next(in: bytes.span) {
      let place = table.insert(section, cid, in: bytes.span).place
      table.mark(place, UInt8(number % 16))
      number += 1
    }
    for (number, block) in blocks.enumerated() {
      let found = table.place(of: block.cid, in: bytes.span)
      let place = try #require(found)
      #expect(table.marks(place) == UInt8(number % 16))
      table.mark(place, 5)
      #expect(table.marks(place) == UInt8(number % 16) | 5)
      #expect(table.start(place) == table.section(place, in: bytes.span).start)
    }
  }

  @Test func `finds sections of every length`() throws {
    let blocks = [0, 1, 90, 91, 92, 16_346, 16_347, 16_348, 2_097_115, 2_097_116].map { count in
      let body = [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: count)
      return Block(cid: CID(codec: .raw, hashing: body.span), bytes: body)
    }
    let bytes = car(blocks)
    expect(try table(of: bytes).0, bytes, has: blocks)
  }

  @Test func `grows with its blocks`() throws {
    var generator = SeededGenerator()
    print("tables of blocks: \(generator)")
    var blocks: [Block] = []
    for number in 0..<5000 {
      let body = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
      let cid =
        number.isMultiple(of: 3)
        ? CID(
          codec: .raw,
          multihash: Multihash(
            function: HashFunction(rawValue: .random(in: 0x20...0xffff, using: &generator)),
            digest: body))
        : CID(codec: .dagCBOR, hashing: body.span)
      blocks.append(Block(cid: cid, bytes: body))
    }
    let bytes = car(blocks)
    expect(try table(of: bytes).0, bytes, has: blocks)
  }

  /// Were the digest alone to decide on the place, as many blocks as this would take as many steps
  /// squared.
  @Test func `is not slowed down by one digest under many codecs`() throws {
    let digest = SHA256.digest(of: [0].span)
    let blocks = (0..<20_000).map {
      Block(cid: CID(codec: Codec(rawValue: UInt64($0)), digest: digest), bytes: [0])
    }
    let bytes = car(blocks)
    expect(try table(of: bytes).0, bytes, has: blocks)
  }
}
