import IPLD
import TestSupport
import Testing

@Suite struct `A check of a CAR that streams by` {
  /// The result of a check: the roots, how many sections were whole and right, and the first error.
  private struct Outcome: Equatable {
    var roots: [CID]?
    var sections: Int
    var error: CARError?
  }

  /// Pushes bytes in, in pieces of these lengths again and again.
  private func check(
    _ bytes: [UInt8], _ lengths: [Int] = [Int.max], limits: CARLimits = .streaming
  ) -> Outcome {
    var checker = CARStreamChecker(limits: limits)
    var rest = bytes[...]
    var number = 0
    var error: CARError?
    do throws(CARError) {
      while !rest.isEmpty {
        let piece = Array(rest.prefix(lengths[number % lengths.count]))
        number += 1
        rest = rest.dropFirst(piece.count)
        try checker.take(piece.span)
      }
      try checker.finish()
    } catch let found {
      error = found
    }
    return Outcome(
      roots: checker.header?.roots, sections: checker.sectionCount, error: error)
  }

  /// What a reader that has all of it says.
  private func read(_ bytes: [UInt8], limits: CARLimits = .streaming) -> Outcome {
    let reading = CARReading(bytes, limits: limits)
    return Outcome(roots: reading.roots, sections: reading.blocks.count, error: reading.error)
  }

  @Test func `says the same whatever the pieces`() {
    let bytes = SampleCAR.version1
    let whole = Outcome(roots: SampleCAR.roots, sections: SampleCAR.blocks.count, error: nil)
    #expect(check(bytes) == whole)
    for size in 1...bytes.count { #expect(check(bytes, [size]) == whole, "\(size) at a time") }
  }

  @Test(arguments: [UInt64(1), 2, 3])
  func `says the same of pieces of any lengths`(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    for _ in 0..<200 {
      let lengths = (0..<5).map { _ in Int.random(in: 0...90, using: &generator) } + [1]
      #expect(check(SampleCAR.version1, lengths).error == nil, "\(lengths)")
    }
  }

  @Test func `counts the bytes that have come`() throws {
    var checker = CARStreamChecker()
    #expect(checker.header == nil)
    let bytes = SampleCAR.version1
    let (beginning, rest) = (Array(bytes[..<40]), Array(bytes[40...]))
    try checker.take(beginning.span)
    #expect(checker.byteCount == 40)
    try checker.take(rest.span)
    #expect(checker.byteCount == bytes.count)
    #expect(checker.header?.roots == SampleCAR.roots)
    try checker.finish()
  }

  @Test func `finds every cut that a reader finds, at the same place`() {
    for length in 0..<SampleCAR.version1.count {
      let cut = Array(SampleCAR.version1.prefix(length))
      for lengths in [[Int.max], [1], [7], [64, 3]] {
        #expect(check(cut, lengths) == read(cut), "cut to \(length), by \(lengths)")
      }
    }
  }

  @Test func `finds every spoilt byte that a reader finds, at the same place`() {
    for place in SampleCAR.version1.indices {
      for change in [UInt8(1), 0x80, 0xff] {
        var bytes = SampleCAR.version1
        bytes[place] ^= change
        let expected = read(bytes)
        for lengths in [[Int.max], [1], [50, 1]] {
          #expect(check(bytes, lengths) == expected, "byte \(place), by \(lengths)")
        }
      }
    }
  }

  @Test func `refuses what is no CAR as soon as that can be seen`() {
    for text in ["<!DOCTYPE html><html><head><title>Sign in to the network</title></head></html>"] {
      let bytes = Array(text.utf8)
      #expect(check(bytes).error != nil)
      #expect(check(bytes, [1]) == check(bytes))
    }
    #expect(check([]).error == CARError(.truncatedHeader, offset: 0))
    #expect(check(SampleCAR.version2(SampleCAR.version1)).error != nil)
  }

  @Test func `believes no length before the bytes are there`() {
    let header = CARHeader(roots: []).bytes
    let lengths: [UInt64] = [UInt64(CARLimits.streaming.section) + 1, 1 << 40, (1 << 63) - 1]
    for length in lengths {
      var section = header
      Varint.append(length, to: &section)
      #expect(
        check(section, [1]).error?.reason
          == .sectionTooLong(limit: CARLimits.streaming.section))
      var bytes: [UInt8] = []
      Varint.append(length, to: &bytes)
      #expect(
        check(bytes, [1]).error?.reason == .headerTooLong(limit: CARLimits.streaming.header))
    }
    let endless = header + [UInt8](repeating: 0xff, count: 20)
    #expect(check(endless, [1]).error == CARError(.malformedLength, offset: header.count))
    // The longest that is allowed is waited for.
    var bytes = header
    Varint.append(UInt64(CARLimits.streaming.section), to: &bytes)
    #expect(check(bytes).error == CARError(.truncatedSection, offset: header.count))
    var empty = header
    Varint.append(0, to: &empty)
    #expect(check(empty).error == CARError(.emptySection, offset: header.count))
  }

  @Test func `takes the longest block of a repository, and no longer one`() {
    for extra in [0, 1] {
      let body = [UInt8](repeating: 0, count: RepositoryLimits.block + extra)
      let cid = CID(codec: .dagCBOR, hashing: body.span)
      var bytes = CARHeader(roots: []).bytes
      let start = bytes.count
      CARWriter.appendSection(cid, body.span, to: &bytes)
      let error = CARError(.blockTooLong(cid, length: body.count), offset: start)
      #expect(check(bytes).error == (extra == 0 ? nil : error))
      #expect(error.faultKind == .limit)
    }
    // Of one that is longer still it is not waited for the end.
    var bytes = CARHeader(roots: []).bytes
    Varint.append(UInt64(CARLimits.streaming.section) + 1, to: &bytes)
    #expect(check(bytes).error?.faultKind == .limit)
  }

  @Test func `takes a section that comes in very many pieces`() {
    var generator = SeededGenerator(seed: 5)
    let body = generator.bytes(300_000)
    var bytes = CARHeader(roots: []).bytes
    CARWriter.appendSection(CID(codec: .raw, hashing: body.span), body.span, to: &bytes)
    #expect(check(bytes, [1]) == Outcome(roots: [], sections: 1, error: nil))
    bytes[bytes.count - 1] ^= 1
    #expect(check(bytes, [1]).error == read(bytes).error)
  }
}
