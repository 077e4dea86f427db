import ATProtocol
import IPLD
import Repository
import Testing

/// CARs and blocks that are made to cost more than their bytes.
@Suite(.timeLimit(.minutes(15))) struct `A hostile CAR` {
  @Test func `with digests chosen to meet in one place is read in proportion`() throws {
    // Nothing says that these blocks hash to their CIDs, so their digests can be anything.
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: [.example()], to: &bytes)
    for number in 0..<60_000 as Range<UInt64> {
      var digest = [UInt8](repeating: 0, count: 32)
      let word = (number & 0xff) << 24 | (number >> 8) << 52
      for index in 0..<8 { digest[index] = UInt8(truncatingIfNeeded: word >> (8 * UInt64(index))) }
      digest[8] = 1
      digest[24] = 1
      let cid = CID(codec: .raw, digest: SHA256Digest(digest.span))
      CARWriter.appendSection(cid, [UInt8]().span, to: &bytes)
    }
    let found = try inspect(bytes)
    #expect(found.distinctBlockCount == 60_000)
    #expect(found.mismatchedBlocks.count == 60_000)
  }

  @Test func `with a long array decodes in proportion`() throws {
    let value = IPLDValue.array(Array(repeating: .integer(1), count: 300_000))
    let bytes = try DAGCBOREncoder.encode(value)
    #expect(try DAGCBORDecoder.decode(bytes.span).array?.count == 300_000)
  }
}
