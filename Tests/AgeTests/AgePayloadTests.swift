import Age
import TestSupport
import Testing

/// Lengths of contents around the borders of chunks.
private let lengths = [
  0, 1, 15, 16, 17, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 300_000,
]

@Suite struct `Chunks of an age payload` {
  private let fileKey: SecretBytes
  private let nonce: [UInt8]

  init() throws {
    fileKey = try SecretBytes.random(count: 16)
    nonce = try AgePayload.makeNonce()
  }

  private func payload() throws -> AgePayload { try AgePayload(fileKey: fileKey, nonce: nonce) }

  private func sealed(_ content: [UInt8]) throws -> [UInt8] {
    var payload = try payload()
    let chunks = AgeChunks(length: content.count)
    var sealed: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: AgePayload.sealedChunkLength)
    for index in 0..<chunks.count {
      var target = buffer.mutableSpan
      let count = try payload.seal(
        content.span.extracting(chunks.range(of: index)), index: UInt64(index),
        isLast: chunks.isLast(index), into: &target)
      sealed += buffer[..<count]
    }
    return sealed
  }

  private func opened(
    _ sealed: [UInt8], _ chunk: Range<Int>, index: Int, isLast: Bool,
    with payload: inout AgePayload
  ) throws(AgeError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0xa5, count: AgePayload.chunkLength)
    var target = buffer.mutableSpan
    let count = try payload.open(
      sealed.span.extracting(chunk), index: UInt64(index), isLast: isLast, into: &target)
    return Array(buffer[..<count])
  }

  @Test(arguments: lengths)
  func `open to what was sealed, in any order`(_ length: Int) throws {
    var generator = SeededGenerator(seed: UInt64(length))
    let content = generator.bytes(length)
    let sealed = try sealed(content)
    let chunks = try AgeChunks(sealedLength: sealed.count)
    #expect(chunks == AgeChunks(length: length))
    #expect(sealed.count == AgePayload.sealedLength(of: length))
    #expect(try AgePayload.length(ofSealed: sealed.count) == length)

    var whole = [UInt8](repeating: 0, count: length)
    var payload = try payload()
    try unsafe sealed.withUnsafeBytes { sealed in
      try unsafe whole.withUnsafeMutableBytes { try unsafe payload.openAll(sealed, into: $0) }
    }
    #expect(whole == content)
    for index in (0..<chunks.count).shuffled(using: &generator) {
      let piece = try opened(
        sealed, chunks.sealedRange(of: index), index: index, isLast: chunks.isLast(index),
        with: &payload)
      #expect(piece == Array(content[chunks.range(of: index)]))
    }
  }

  @Test(arguments: lengths)
  func `seal and open where they lie`(_ length: Int) throws {
    guard length <= AgePayload.chunkLength else { return }
    var generator = SeededGenerator(seed: UInt64(length))
    let content = generator.bytes(length)
    var buffer = content + [UInt8](repeating: 0, count: AgePayload.tagLength)
    var payload = try payload()
    _ = try unsafe buffer.withUnsafeMutableBytes {
      try unsafe payload.seal(
        UnsafeRawBufferPointer(rebasing: $0[..<length]), index: 0, isLast: true, into: $0)
    }
    #expect(buffer == (try sealed(content)))
    _ = try unsafe buffer.withUnsafeMutableBytes {
      try unsafe payload.open(UnsafeRawBufferPointer($0), index: 0, isLast: true, into: $0)
    }
    #expect(Array(buffer[..<length]) == content)
  }

  @Test func `do not open in another place`() throws {
    let content = [UInt8](repeating: 1, count: 200_000)
    let sealed = try sealed(content)
    let chunks = try AgeChunks(sealedLength: sealed.count)
    var payload = try payload()
    #expect(throws: AgeError.damagedChunk(1)) {
      try opened(sealed, chunks.sealedRange(of: 0), index: 1, isLast: false, with: &payload)
    }
    #expect(throws: AgeError.damagedChunk(0)) {
      try opened(sealed, chunks.sealedRange(of: 0), index: 0, isLast: true, with: &payload)
    }
    #expect(throws: AgeError.damagedChunk(3)) {
      try opened(sealed, chunks.sealedRange(of: 3), index: 3, isLast: false, with: &payload)
    }
    // A failure leaves nothing behind that would make the next fail.
    let first = try opened(
      sealed, chunks.sealedRange(of: 0), index: 0, isLast: false, with: &payload)
    #expect(first == Array(content[chunks.range(of: 0)]))
  }

  @Test func `leave nothing of a damaged chunk behind`() throws {
    let content = [UInt8](repeating: 1, count: 1000)
    var sealed = try sealed(content)
    sealed[999] ^= 1
    var payload = try payload()
    var buffer = [UInt8](repeating: 0xa5, count: AgePayload.chunkLength)
    #expect(throws: AgeError.damagedChunk(0)) {
      var target = buffer.mutableSpan
      try payload.open(sealed.span, index: 0, isLast: true, into: &target)
    }
    #expect(buffer[..<1000].allSatisfy { $0 == 0 })
    #expect(buffer[1000...].allSatisfy { $0 == 0xa5 })
  }

  @Test func `are numbered up to the highest number`() throws {
    var payload = try payload()
    let content: [UInt8] = [1, 2, 3]
    var seen: Set<[UInt8]> = []
    for index in [0, 1, 0xff_ffff, 0x100_0000, 1 << 32, .max] as [UInt64] {
      var sealed = [UInt8](repeating: 0, count: content.count + AgePayload.tagLength)
      var target = sealed.mutableSpan
      try payload.seal(content.span, index: index, isLast: true, into: &target)
      var opened: [UInt8] = [0, 0, 0]
      target = opened.mutableSpan
      try payload.open(sealed.span, index: index, isLast: true, into: &target)
      #expect(opened == content)
      #expect(seen.insert(sealed).inserted)
    }
  }

  @Test func `cannot have some lengths`() {
    for length in [-1, 0, 1, 15, 65_553, 65_567, 131_105] {
      #expect(throws: AgeError.truncatedPayload) { try AgeChunks(sealedLength: length) }
    }
    for length in [65_552 + 16, 131_104 + 16] {
      #expect(throws: AgeError.emptyLastChunk) { try AgeChunks(sealedLength: length) }
    }
  }

  @Test func `cover ranges of the content`() {
    let chunks = AgeChunks(length: 200_000)
    #expect(chunks.count == 4)
    #expect(chunks.covering(0..<0).isEmpty)
    #expect(chunks.covering(0..<1) == 0..<1)
    #expect(chunks.covering(65_535..<65_536) == 0..<1)
    #expect(chunks.covering(65_535..<65_537) == 0..<2)
    #expect(chunks.covering(65_536..<200_000) == 1..<4)
    #expect(chunks.covering(200_000..<200_000).isEmpty)
    #expect(AgeChunks(length: 0).sealedRange(of: 0) == 0..<16)
  }
}
