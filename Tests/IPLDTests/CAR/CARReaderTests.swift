import IPLD
import TestSupport
import Testing

@Suite struct `A CAR reader` {
  private struct Outage: Error, Equatable {}

  @Test func `gives the blocks in order, whatever the chunks`() {
    let whole = CARReading(SampleCAR.version1)
    #expect(whole.error == nil)
    #expect(whole.roots == SampleCAR.roots)
    #expect(whole.blocks == SampleCAR.blocks)
    for size in 1...SampleCAR.version1.count {
      #expect(CARReading(SampleCAR.version1, inChunksOf: size) == whole, "\(size) at a time")
    }
  }

  @Test func `tells a clean end from a cut`() {
    let (bytes, starts) = (SampleCAR.version1, SampleCAR.starts)
    for length in 0..<bytes.count {
      let cut = Array(bytes.prefix(length))
      let reading = CARReading(cut)
      if length < starts[0] {
        #expect(reading.error == CARError(.truncatedHeader, offset: length))
        #expect(reading.roots == nil)
      } else {
        let sections = starts.lastIndex { $0 <= length } ?? 0
        let isBoundary = starts[sections] == length
        let error = CARError(.truncatedSection, offset: starts[sections])
        #expect(reading.error == (isBoundary ? nil : error), "cut to \(length)")
        #expect(reading.blocks == Array(SampleCAR.blocks.prefix(sections)))
      }
      for size in [1, 7, 4096] {
        #expect(CARReading(cut, inChunksOf: size) == reading, "cut to \(length)")
      }
    }
  }

  @Test func `needs neither roots nor blocks`() {
    let bytes = CARHeader(roots: []).bytes
    for reading in [CARReading(bytes), CARReading(bytes, inChunksOf: 1)] {
      #expect(reading.error == nil)
      #expect(reading.roots == [])
      #expect(reading.blocks == [])
    }
  }

  @Test func `gives a block as often as it comes`() {
    let block = SampleCAR.blocks[1]
    var bytes = CARHeader(roots: []).bytes
    for _ in 0..<3 { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
    #expect(CARReading(bytes).blocks == [block, block, block])
    #expect(CARReading(bytes, inChunksOf: 5).blocks == [block, block, block])
  }

  @Test func `checks every block unless it is told not to`() {
    for (index, block) in SampleCAR.blocks.enumerated() {
      guard block.cid.verify(block.bytes.span) == .matches else { continue }
      var blocks = SampleCAR.blocks
      blocks[index] = Block(cid: block.cid, bytes: block.bytes + [0])
      var bytes = CARHeader(roots: []).bytes
      for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
      let reading = CARReading(bytes)
      #expect(reading.error?.reason == .contentMismatch(block.cid))
      #expect(reading.blocks == Array(blocks.prefix(index)))
      #expect(CARReading(bytes, inChunksOf: 64) == reading)
      #expect(CARReading(bytes, verifying: false).blocks == blocks)
      #expect(CARReading(bytes, inChunksOf: 64, verifying: false).blocks == blocks)
    }
  }

  @Test func `reads the header first, and once`() throws {
    var chunks = [SampleCAR.version1]
    var reader = CARReader<Never> { chunks.popLast() }
    #expect(reader.header == nil)
    let header = try reader.readHeader()
    #expect(header.roots == SampleCAR.roots)
    #expect(header.length == SampleCAR.starts[0])
    #expect(try reader.readHeader() == header)
    #expect(try reader.next() == SampleCAR.blocks[0])
    #expect(reader.header == header)
  }

  @Test func `stays at the end`() throws {
    var chunks = [SampleCAR.version1]
    var reader = CARReader<Never> { chunks.popLast() }
    while try reader.next() != nil {}
    #expect(try reader.next() == nil)
    #expect(try reader.next() == nil)
  }

  @Test func `takes empty chunks for what they are`() throws {
    var chunks = SampleCAR.version1.reversed().flatMap { [[], [$0], []] }
    var reader = CARReader<Never> { chunks.popLast() }
    var blocks: [Block] = []
    while let block = try reader.next() { blocks.append(block) }
    #expect(blocks == SampleCAR.blocks)
  }

  @Test func `asks for no more than it needs`() throws {
    var chunks = SampleCAR.version1.map { [$0] }[...]
    var reader = CARReader<Never> { chunks.popFirst() }
    let left = SampleCAR.version1.count - SampleCAR.starts[1]
    _ = try reader.next()
    #expect(chunks.count == left)
  }

  @Test func `says again what went wrong`() {
    var chunks = [SampleCAR.version1 + [0]]
    var reader = CARReader<Never> { chunks.popLast() }
    let error = CARError(.emptySection, offset: SampleCAR.version1.count)
    var blocks = 0
    var errors: [CARError] = []
    while errors.count < 3 {
      do {
        _ = try reader.next()
        blocks += 1
      } catch {
        switch error {
        case .car(let error): errors.append(error)
        }
      }
    }
    #expect(blocks == SampleCAR.blocks.count)
    #expect(errors == [error, error, error])
  }

  @Test func `passes on what its source says`() {
    for length in [0, 5, SampleCAR.starts[0], SampleCAR.starts[1] + 3] {
      var chunks = [Array(SampleCAR.version1.prefix(length))]
      var reader = CARReader { () throws(Outage) -> [UInt8]? in
        guard let chunk = chunks.popLast() else { throw Outage() }
        return chunk
      }
      for _ in 0..<2 {
        do {
          while try reader.next() != nil {}
          Issue.record("an outage after \(length) bytes is not the end")
        } catch {
          guard case .source(Outage()) = error else {
            Issue.record("\(error)")
            continue
          }
        }
      }
    }
  }

  @Test func `holds no longer a section than its limit`() {
    let block = SampleCAR.blocks[3]
    let section = block.cid.bytes.count + block.bytes.count
    var bytes = CARHeader(roots: []).bytes
    let start = bytes.count
    CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes)
    let enough = CARLimits(header: start - 1, section: section)
    #expect(CARReading(bytes, limits: enough).error == nil)
    #expect(CARReading(bytes, inChunksOf: 9, limits: enough).error == nil)
    let short = CARLimits(header: start - 1, section: section - 1)
    let error = CARError(.sectionTooLong(limit: section - 1), offset: start)
    #expect(CARReading(bytes, limits: short).error == error)
    #expect(CARReading(bytes, inChunksOf: 9, limits: short).error == error)
    let shorter = CARLimits(header: start - 2, section: section)
    let other = CARError(.headerTooLong(limit: start - 2), offset: 0)
    #expect(CARReading(bytes, limits: shorter).error == other)
    #expect(CARReading(bytes, inChunksOf: 9, limits: shorter).error == other)
  }
}
