import IPLD
import TestSupport
import Testing

@Suite struct `A CAR that breaks a rule` {
  private static let limits = CARLimits(header: 1 << 10, section: 1 << 12)
  private static let digest = String(repeating: "aa", count: 32)
  /// A header without roots, 18 bytes.
  private static let header = "11 a2 65 726f6f7473 80 67 76657273696f6e 01"

  private func expect(_ hex: String, _ reason: CARError.Reason, _ offset: Int) throws {
    let bytes = try [UInt8](hex: hex)
    let whole = CARReading(bytes, limits: Self.limits)
    #expect(whole.error == CARError(reason, offset: offset))
    for size in [1, 7, 4096] {
      #expect(
        CARReading(bytes, inChunksOf: size, limits: Self.limits) == whole, "\(size) at a time")
    }
  }

  @Test(
    arguments: [
      ("", .truncatedHeader, 0),
      ("11", .truncatedHeader, 1),
      ("80", .truncatedHeader, 1),
      ("11 a2 65 726f6f7473 80", .truncatedHeader, 9),
      ("0a a1 67 76657273696f", .truncatedHeader, 9),
      ("91 00", .malformedLength, 0),
      ("ff ff ff ff ff ff ff ff ff 01", .malformedLength, 0),
      ("00", .malformedHeader, 0),
      ("81 08", .headerTooLong(limit: 1024), 0),
      ("ff ff ff ff ff ff ff ff 7f", .headerTooLong(limit: 1024), 0),
      ("01 ff", .headerNotDAGCBOR(.indefiniteLength), 1),
      ("02 a0 a0", .headerNotDAGCBOR(.trailingBytes), 2),
      ("01 a1", .headerNotDAGCBOR(.truncated), 2),
      ("12 a2 65 726f6f7473 80 67 76657273696f6e 18 01", .headerNotDAGCBOR(.notMinimal), 17),
      ("11 a2 67 76657273696f6e 01 65 726f6f7473 80", .headerNotDAGCBOR(.keysNotSorted), 11),
      ("01 80", .malformedHeader, 1),
      ("01 01", .malformedHeader, 1),
      // No version; no roots; roots that are not an array; a version that is text, null, a float.
      ("01 a0", .malformedHeader, 0),
      ("08 a1 65 726f6f7473 80", .malformedHeader, 0),
      ("0a a1 67 76657273696f6e 01", .malformedHeader, 0),
      ("11 a2 65 726f6f7473 a0 67 76657273696f6e 01", .malformedHeader, 0),
      ("11 a2 65 726f6f7473 f6 67 76657273696f6e 01", .malformedHeader, 0),
      ("12 a2 65 726f6f7473 80 67 76657273696f6e 61 31", .malformedHeader, 0),
      ("11 a2 65 726f6f7473 80 67 76657273696f6e f6", .malformedHeader, 0),
      // A root that is a number, and one that is the bytes of a CID without the tag.
      ("12 a2 65 726f6f7473 81 01 67 76657273696f6e 01", .malformedHeader, 0),
      ("17 a2 65 726f6f7473 81 45 0001550000 67 76657273696f6e 01", .malformedHeader, 0),
      // A third key.
      ("14 a3 61 61 00 65 726f6f7473 80 67 76657273696f6e 01", .malformedHeader, 0),
      ("11 a2 65 726f6f7473 80 67 76657273696f6e 00", .unknownVersion(0), 0),
      ("11 a2 65 726f6f7473 80 67 76657273696f6e 02", .unknownVersion(2), 0),
      ("11 a2 65 726f6f7473 80 67 76657273696f6e 03", .unknownVersion(3), 0),
      ("0a a1 67 76657273696f6e 03", .unknownVersion(3), 0),
    ] as [(String, CARError.Reason, Int)])
  func `in its header is refused`(hex: String, reason: CARError.Reason, offset: Int) throws {
    try expect(hex, reason, offset)
  }

  @Test(
    arguments: [
      ("00", .emptySection, 0),
      ("80", .truncatedSection, 0),
      ("05", .truncatedSection, 0),
      ("05 01 55", .truncatedSection, 0),
      ("24 01 55 12 20 \(digest.dropLast(2))", .truncatedSection, 0),
      ("80 20", .truncatedSection, 0),
      ("81 20", .sectionTooLong(limit: 4096), 0),
      ("ff ff ff ff 0f", .sectionTooLong(limit: 4096), 0),
      ("ff ff ff ff ff ff ff ff 7f", .sectionTooLong(limit: 4096), 0),
      ("a4 00 01 55", .malformedLength, 0),
      ("80 80 80 80 80 80 80 80 80 01", .malformedLength, 0),
      ("01 01", .malformedCID(.truncated), 2),
      ("02 02 55", .malformedCID(.unknownVersion), 1),
      ("04 01 d5 00 12", .malformedCID(.varintNotMinimal), 2),
      ("05 01 55 12 81 10", .malformedCID(.digestTooLong), 4),
      // The CID of the next section does not make up for what is missing in this one.
      ("04 01 55 12 20 24 01 55 12 20 \(digest)", .malformedCID(.truncated), 5),
      ("22 12 20 \(digest) 22 12 20 \(digest.dropLast(2))", .contentMismatch(version0), 0),
      ("02 01 80 01 00", .malformedCID(.truncated), 3),
      ("24 01 55 12 20 \(digest)", .contentMismatch(raw), 0),
      ("25 01 55 12 20 \(digest) 00", .contentMismatch(raw), 0),
      ("05 01 55 00 00 00", .contentMismatch(identity), 0),
    ] as [(String, CARError.Reason, Int)])
  func `in a section is refused`(hex: String, reason: CARError.Reason, offset: Int) throws {
    let length = 18
    try expect("\(Self.header) \(hex)", reason, length + offset)
    // And after a good one: a raw block without bytes.
    let good = "24 01 55 12 20 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    try expect("\(Self.header) \(good) \(hex)", reason, length + 37 + offset)
  }

  private static let aa = [UInt8](repeating: 0xaa, count: 32)
  private static let raw = CID(codec: .raw, digest: SHA256Digest(aa.span))
  private static let identity = CID(
    codec: .raw, multihash: Multihash(function: .identity, digest: []))
  private static let version0: CID = {
    do { return try CID(Base58.encode([0x12, 0x20] + aa)) } catch {
      preconditionFailure("\(error)")
    }
  }()

  @Test func `is described with its place`() {
    for reason: CARError.Reason in [
      .truncatedHeader, .truncatedSection, .malformedLength, .malformedHeader, .emptySection,
      .sectionTooLong(limit: 5), .contentMismatch(Self.raw), .malformedCID(.truncated),
      .headerNotDAGCBOR(.truncated),
    ] {
      #expect(CARError(reason, offset: 1234).description.contains("1234"))
    }
    #expect(CARError(.headerTooLong(limit: 77), offset: 0).description.contains("77"))
    #expect(CARError(.unknownVersion(9), offset: 0).description.contains("9"))
  }
}
