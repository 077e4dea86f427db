import IPLD
import TestSupport
import Testing

@Suite struct `SHA-256` {
  /// The examples of FIPS 180-4's companion document, and the message of no bytes.
  @Test(arguments: [
    ("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
        + "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", 1,
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
    ),
    ("a", 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
  ])
  func `gives the digests of the standard`(text: String, times: Int, digest: String) {
    let message = Array(repeatElement(Array(text.utf8), count: times).joined())
    #expect(SHA256.digest(of: message.span).description == digest)
    // libcrypto's too, which serves where the processor has no instructions.
    var hash = SHA256(usesLanes: false)
    hash.update(message.span)
    #expect(hash.finish().description == digest)
  }

  @Test(arguments: SHA256.hasLanes ? [false, true] : [false])
  func `gives the digests of many messages as of each`(usesLanes: Bool) {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<20_000).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    // Every length through both paddings, in one batch, and batches of few and of none.
    var batches = [(0..<300).map { $0..<2 * $0 }, [], [7..<7], [0..<20_000, 3..<4]]
    for count in 2..<30 {
      batches.append(
        (0..<count).map { _ in
          let start = Int.random(in: 0..<10_000)
          return start..<start + Int.random(in: 0..<(count.isMultiple(of: 2) ? 200 : 10_000))
        })
    }
    for batch in batches {
      let digests = SHA256.digests(of: batch, in: bytes.span, usesLanes: usesLanes)
      #expect(digests == batch.map { SHA256.digest(of: bytes.span.extracting($0)) }, "\(batch)")
    }
  }

  @Test(arguments: SHA256.hasLanes ? [false, true] : [false])
  func `does not care in which pieces a message comes`(usesLanes: Bool) {
    // Through the block size of 64 bytes and the padding's edge at 55, and through twice that.
    let message = (0..<150).map { UInt8($0) }
    for length in message.indices {
      let whole = Array(message.prefix(length))
      // libcrypto's, which is what the processor's instructions are compared with.
      var reference = SHA256(usesLanes: false)
      reference.update(whole.span)
      let digest = reference.finish()
      for cut in stride(from: 0, through: length, by: 7) {
        var hash = SHA256(usesLanes: usesLanes)
        hash.update(whole.span.extracting(0..<cut))
        hash.update(whole.span.extracting(cut..<cut))
        hash.update(whole.span.extracting(cut..<length))
        #expect(hash.finish() == digest, "\(length) bytes, cut at \(cut)")
      }
    }
  }

  @Test(arguments: SHA256.hasLanes ? [false, true] : [false])
  func `begins a new message after each that it finishes`(usesLanes: Bool) {
    var hash = SHA256(usesLanes: usesLanes)
    let empty = hash.finish()
    #expect(hash.finish() == empty)
    let message = Array("abc".utf8)
    hash.update(message.span)
    let first = hash.finish()
    #expect(first == SHA256.digest(of: message.span))
    hash.update(message.span)
    #expect(hash.finish() == first)
    #expect(hash.finish() == empty)
  }

  @Test func `gives digests that are their bytes`() {
    let bytes = (1...32).map { UInt8($0) }
    let digest = SHA256Digest(bytes.span)
    #expect(digest.bytes == bytes)
    #expect(
      digest.description == "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20")
    var appended: [UInt8] = [0]
    digest.append(to: &appended)
    #expect(SHA256Digest(appended.span, at: 1) == digest)
  }

  @Test func `gives digests in the order of their bytes`() {
    let zeros = [UInt8](repeating: 0, count: 32)
    for index in zeros.indices {
      var (low, high) = (zeros, zeros)
      low[index] = 1
      high[index] = 0x80
      if index + 1 < zeros.count { low[index + 1] = 0xff }
      let (left, right) = (SHA256Digest(low.span), SHA256Digest(high.span))
      #expect(left < right)
      #expect(!(right < left))
      #expect(left != right)
      #expect(SHA256Digest(zeros.span) < left)
      #expect(!(left < left))
    }
  }
}
