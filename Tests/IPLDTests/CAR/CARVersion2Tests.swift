import IPLD
import Testing

@Suite struct `A CAR of version 2` {
  private let inner = SampleCAR.version1

  @Test func `is read for the CAR inside it`() throws {
    for start: UInt64 in [51, 52, 60, 400] {
      for tail: [UInt8] in [[], [0], [0xff, 0xff, 0xff]] {
        let bytes = SampleCAR.version2(inner, start: start, tail: tail)
        let payload = try CARVersion2.payload(of: bytes.span)
        #expect(payload == Int(start)..<Int(start) + inner.count)
        let reading = CARReading(bytes)
        #expect(reading == CARReading(inner))
        #expect(reading.written == inner)
        for size in [1, 7, 50, 51, 52, 4096] {
          #expect(CARReading(bytes, inChunksOf: size) == reading, "\(size) at a time")
        }
      }
    }
  }

  @Test func `is not what a CAR of version 1 is`() throws {
    #expect(try CARVersion2.payload(of: inner.span) == 0..<inner.count)
    #expect(try CARVersion2.payload(of: [0x0a].span) == 0..<1)
    #expect(CARVersion2.pragma.count == 11)
  }

  /// In a pipe, all that has come is read before the cut shows; unlike a CAR of version 1 it shows
  /// everywhere.
  @Test func `is refused wherever it is cut`() throws {
    let bytes = SampleCAR.version2(inner, start: 60)
    for length in 0..<bytes.count {
      let cut = Array(bytes.prefix(length))
      let streamed = CARReading(cut, inChunksOf: 1)
      for size in [7, 4096] { #expect(CARReading(cut, inChunksOf: size) == streamed) }
      let whole = CARReading(cut)
      if length < 60 + SampleCAR.starts[0] {
        #expect(streamed.error == CARError(.truncatedHeader, offset: length))
      } else if length < 60 + inner.count {
        let sections = SampleCAR.starts.lastIndex { 60 + $0 <= length } ?? 0
        #expect(
          streamed.error == CARError(.truncatedSection, offset: 60 + SampleCAR.starts[sections]),
          "cut to \(length)")
        #expect(streamed.blocks == Array(SampleCAR.blocks.prefix(sections)))
      } else {
        #expect(streamed == CARReading(inner))
      }
      switch length {
      case ..<51: #expect(whole.error == CARError(.truncatedHeader, offset: length))
      case ..<(60 + inner.count):
        #expect(whole.error == CARError(.malformedVersion2, offset: 27))
      default: #expect(whole == CARReading(inner))
      }
    }
  }

  @Test func `is refused when it points outside of itself`() {
    let error = CARError(.malformedVersion2, offset: 27)
    for (start, length) in [
      (0, nil), (50, nil), (1 << 63, nil), (UInt64.max, nil), (60, 1 << 63), (60, .max),
      (.max, .max),
    ] as [(UInt64, UInt64?)] {
      let bytes = SampleCAR.version2(inner, start: start, length: length)
      #expect(CARReading(bytes).error == error)
      #expect(CARReading(bytes, inChunksOf: 4096).error == error)
      #expect(CARReading(bytes, inChunksOf: 1).error == error)
    }
  }

  /// Lengths that a file on some disk could have: a pipe finds out at its end.
  @Test func `is refused when it claims more than there is`() {
    for length in [
      UInt64(inner.count) + 3, 1 << 40, 1 << 62, UInt64(Int.max) - 60, UInt64(Int.max),
    ] {
      let bytes = SampleCAR.version2(inner, length: length, tail: [])
      #expect(CARReading(bytes).error == CARError(.malformedVersion2, offset: 27))
      for size in [1, 7, 4096] {
        let reading = CARReading(bytes, inChunksOf: size)
        #expect(reading.error == CARError(.truncatedSection, offset: bytes.count))
        #expect(reading.blocks == SampleCAR.blocks)
      }
    }
    for start in [5000, 1 << 40, UInt64(Int.max)] {
      let bytes = SampleCAR.version2(inner, start: start)
      #expect(CARReading(bytes).error == CARError(.malformedVersion2, offset: 27))
      for size in [1, 7, 4096] {
        let reading = CARReading(bytes, inChunksOf: size)
        #expect(reading.error == CARError(.truncatedHeader, offset: bytes.count))
      }
    }
  }

  @Test func `ends where it says, even inside a header or a section`() {
    for length in 0..<inner.count {
      let bytes = SampleCAR.version2(inner, length: UInt64(length))
      let whole = CARReading(bytes)
      if length < SampleCAR.starts[0] {
        #expect(whole.error == CARError(.truncatedHeader, offset: 60 + length))
      } else {
        let sections = SampleCAR.starts.lastIndex { $0 <= length } ?? 0
        let isBoundary = SampleCAR.starts[sections] == length
        let error = CARError(.truncatedSection, offset: 60 + SampleCAR.starts[sections])
        #expect(whole.error == (isBoundary ? nil : error))
        #expect(whole.blocks == Array(SampleCAR.blocks.prefix(sections)))
      }
      for size in [1, 7, 4096] {
        #expect(CARReading(bytes, inChunksOf: size) == whole, "\(length) bytes, \(size) at a time")
      }
    }
  }

  @Test func `holds no other of version 2`() {
    let bytes = SampleCAR.version2(SampleCAR.version2(inner))
    #expect(CARReading(bytes).error == CARError(.unknownVersion(2), offset: 60))
    #expect(CARReading(bytes, inChunksOf: 7).error == CARError(.unknownVersion(2), offset: 60))
  }
}
