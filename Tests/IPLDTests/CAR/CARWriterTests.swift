import IPLD
import TestSupport
import Testing

@Suite struct `A CAR writer` {
  @Test func `writes the bytes of the specification`() throws {
    #expect(
      CARHeader(roots: []).bytes
        == (try [UInt8](hex: "11 a2 65 726f6f7473 80 67 76657273696f6e 01")))
    let cid = CID(codec: .raw, hashing: [0].span)
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: [cid], to: &bytes)
    let head = try [UInt8](hex: "3a a2 65 726f6f7473 81 d8 2a 58 25 00")
    let tail = try [UInt8](hex: "67 76657273696f6e 01")
    #expect(bytes == head + cid.bytes + tail)
    bytes = []
    CARWriter.appendSection(cid, [0].span, to: &bytes)
    #expect(bytes == [37] + cid.bytes + [0])
    CARWriter.appendPrefix(cid, bodyLength: 1000, to: &bytes)
    #expect(bytes == [37] + cid.bytes + [0] + [0x8c, 0x08] + cid.bytes)
  }

  @Test func `writes a header that says how long it is`() throws {
    for count in [0, 1, 2, 3, 24, 300] {
      let roots = (0..<count).map {
        CID(codec: .raw, hashing: [UInt8(truncatingIfNeeded: $0)].span)
      }
      let header = CARHeader(roots: roots)
      #expect(header.length == header.bytes.count)
      #expect(try CARHeader(header.bytes.span) == header)
      let shifted = [1, 2, 3] + header.bytes + [4]
      #expect(try CARHeader(shifted.span, at: 3) == header)
    }
  }

  @Test func `is undone by reading`() {
    var generator = SeededGenerator()
    print("CARs: \(generator)")
    for _ in 0..<100 {
      var bytes = CARHeader(roots: (0..<3).map { _ in .random(using: &generator) }).bytes
      for _ in 0..<Int.random(in: 0...20, using: &generator) {
        let body = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
          UInt8.random(in: .min ... .max, using: &generator)
        }
        let cid = CID(codec: .dagCBOR, hashing: body.span)
        CARWriter.appendSection(cid, body.span, to: &bytes)
      }
      let size = Int.random(in: 1...64, using: &generator)
      let reading = CARReading(bytes)
      #expect(reading.error == nil, "\(generator)")
      #expect(reading.written == bytes, "\(generator)")
      #expect(CARReading(bytes, inChunksOf: size) == reading, "\(generator)")
    }
  }

  @Test func `after an accident is refused, or somebody wrote those bytes`() {
    var generator = SeededGenerator()
    print("accidents to CARs: \(generator)")
    for _ in 0..<2000 {
      let bytes = SampleCAR.version1.mutated(using: &generator)
      let reading = CARReading(bytes)
      let streamed = CARReading(bytes, inChunksOf: .random(in: 1...64, using: &generator))
      let isAnswered =
        reading.error.map { (0...bytes.count).contains($0.offset) } ?? (reading.written == bytes)
      guard streamed == reading, isAnswered else {
        Issue.record("\(generator): \(Hex.encode(bytes)): \(reading) \(streamed)")
        return
      }
    }
  }

  @Test func `after an accident to version 2 gets an answer`() {
    var generator = SeededGenerator()
    print("accidents to CARs of version 2: \(generator)")
    let sample = SampleCAR.version2(SampleCAR.version1)
    for _ in 0..<2000 {
      var bytes = sample.prefix(60).mutated(using: &generator) + sample.dropFirst(60)
      if Bool.random(using: &generator) { bytes = bytes.mutated(using: &generator) }
      let whole = CARReading(bytes)
      let streamed = CARReading(bytes, inChunksOf: .random(in: 1...64, using: &generator))
      // In memory the end is known from the start; a pipe finds out when it comes.
      let agree =
        whole.error?.reason == .malformedVersion2 ? streamed.error != nil : streamed == whole
      guard agree else {
        Issue.record("\(generator): \(Hex.encode(bytes)): \(whole) \(streamed)")
        return
      }
    }
  }
}
