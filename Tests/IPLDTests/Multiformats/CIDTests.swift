import IPLD
import TestSupport
import Testing

@Suite struct `A CID` {
  private static let digest = String(repeating: "aa", count: 32)

  /// Binary forms that must be read, with what they say.
  private static let readable: [(hex: String, CID.Version, codec: UInt64, function: UInt64, Int)] =
    [
      ("12 20 \(digest)", .v0, 0x70, 0x12, 32),
      ("01 55 12 20 \(digest)", .v1, 0x55, 0x12, 32),
      ("01 71 12 20 \(digest)", .v1, 0x71, 0x12, 32),
      ("01 70 12 20 \(digest)", .v1, 0x70, 0x12, 32),
      ("01 00 12 20 \(digest)", .v1, 0, 0x12, 32),
      ("01 a9 02 12 20 \(digest)", .v1, 0x129, 0x12, 32),
      ("01 71 a0 e4 02 20 \(digest)", .v1, 0x71, 0xb220, 32),
      ("01 55 13 40 \(digest) \(digest)", .v1, 0x55, 0x13, 64),
      ("01 55 12 00", .v1, 0x55, 0x12, 0),
      ("01 55 12 1f \(digest.dropLast(2))", .v1, 0x55, 0x12, 31),
      ("01 55 12 21 \(digest) aa", .v1, 0x55, 0x12, 33),
      ("01 55 00 00", .v1, 0x55, 0, 0),
      ("01 55 00 05 68 65 6c 6c 6f", .v1, 0x55, 0, 5),
      ("01 ff ff ff ff ff ff ff ff 7f 00 00", .v1, 1 << 63 - 1, 0, 0),
      ("01 00 ff ff ff ff ff ff ff ff 7f 00", .v1, 0, 1 << 63 - 1, 0),
    ]

  @Test func `is read from its bytes and written back`() throws {
    for (hex, version, codec, function, length) in Self.readable {
      let bytes = try [UInt8](hex: hex)
      let cid = try CID(bytes.span)
      #expect(cid.version == version, "\(hex)")
      #expect(cid.codec.rawValue == codec, "\(hex)")
      #expect(cid.multihash.function.rawValue == function, "\(hex)")
      #expect(cid.multihash.digest.count == length, "\(hex)")
      #expect(cid.bytes == bytes, "\(hex)")
      #expect(try CID(cid.description) == cid, "\(hex)")
    }
  }

  @Test func `is found among other bytes`() throws {
    var bytes: [UInt8] = [0xff]
    for vector in Self.readable { bytes += try [UInt8](hex: vector.hex) }
    bytes.append(0xff)
    var offset = 1
    for vector in Self.readable {
      let cid = try CID(bytes.span, at: &offset)
      #expect(cid.codec.rawValue == vector.codec)
    }
    #expect(offset == bytes.count - 1)
  }

  @Test(
    arguments: [
      ("", .truncated, 0),
      ("01", .truncated, 1),
      ("01 55", .truncated, 2),
      ("01 55 12", .truncated, 3),
      ("01 55 12 20", .truncated, 4),
      ("01 55 12 20 \(digest.dropLast(2))", .truncated, 35),
      ("01 81", .truncated, 2),
      ("12", .unknownVersion, 0),
      ("12 20", .truncated, 2),
      ("12 20 \(digest.dropLast(2))", .truncated, 33),
      ("12 20 \(digest) 00", .trailingBytes, 34),
      ("01 55 12 20 \(digest) 00", .trailingBytes, 36),
      ("01 55 12 1f \(digest)", .trailingBytes, 35),
      ("01 55 00 00 00", .trailingBytes, 4),
      ("00", .unknownVersion, 0),
      ("00 55 12 20 \(digest)", .unknownVersion, 0),
      ("02 55 12 20 \(digest)", .unknownVersion, 0),
      ("7f", .unknownVersion, 0),
      ("ff 01", .unknownVersion, 0),
      // Version 0 of any other length or function has never been.
      ("12 1f \(digest.dropLast(2))", .unknownVersion, 0),
      ("11 14 \(digest.dropLast(24))", .unknownVersion, 0),
      ("81 00 55 12 20 \(digest)", .varintNotMinimal, 0),
      ("01 d5 00 12 20 \(digest)", .varintNotMinimal, 1),
      ("01 55 92 00 20 \(digest)", .varintNotMinimal, 2),
      ("01 55 12 a0 00 \(digest)", .varintNotMinimal, 3),
      ("ff ff ff ff ff ff ff ff ff 01", .varintTooLong, 0),
      ("01 80 80 80 80 80 80 80 80 80 01 12 20", .varintTooLong, 1),
      ("01 55 80 80 80 80 80 80 80 80 80 01", .varintTooLong, 2),
      ("01 55 12 ff ff ff ff ff ff ff ff ff 7f", .varintTooLong, 3),
      ("01 55 12 81 10", .digestTooLong, 3),
      ("01 55 12 ff ff ff ff ff ff ff ff 7f", .digestTooLong, 3),
    ] as [(String, CIDError.Reason, Int)])
  func `is refused with the rule and the place`(
    hex: String, reason: CIDError.Reason, offset: Int
  ) throws {
    let bytes = try [UInt8](hex: hex)
    let error = CIDError(reason, offset: offset)
    #expect(throws: error) { try CID(bytes.span) }
    #expect(error.description.hasSuffix(", at byte \(offset)"))
  }

  @Test func `at a place gives errors that count from the start of the bytes`() throws {
    let bytes = try [UInt8](hex: "ff ff 01 55 92 00")
    #expect(throws: CIDError(.varintNotMinimal, offset: 4)) {
      var offset = 2
      return try CID(bytes.span, at: &offset)
    }
  }

  @Test func `of AT Protocol is of version 1 with SHA-256, DAG-CBOR or raw`() throws {
    for (hex, version, codec, function, length) in Self.readable {
      let allowed =
        version == .v1 && function == 0x12 && length == 32 && (codec == 0x71 || codec == 0x55)
      #expect(try CID(hex: hex).isATProtocolLink == allowed, "\(hex)")
    }
  }

  @Test func `says whether a block is the one it names`() {
    let body = Array("hello".utf8)
    let cid = CID(codec: .raw, hashing: body.span)
    #expect(cid.verify(body.span) == .matches)
    #expect(cid.verify([1].span) == .mismatch)
    let unknown = CID(
      codec: .raw, multihash: Multihash(function: HashFunction(rawValue: 0x1e), digest: body))
    #expect(unknown.verify(body.span) == .cannotVerify)
  }

  @Test func `differs by version, codec, function and digest`() throws {
    let cids = try Self.readable.map { try CID(hex: $0.hex) }
    #expect(Set(cids).count == cids.count)
    #expect(Set(cids.map(\.description)).count == cids.count)
  }

  @Test func `of any kind survives bytes and text, and accidents do not make two of one`() throws {
    var generator = SeededGenerator()
    print("CIDs: \(generator)")
    for _ in 0..<3000 {
      let cid = CID.random(using: &generator)
      #expect(try CID(cid.bytes.span) == cid, "\(generator)")
      #expect(try CID(cid.description) == cid, "\(generator)")
      let bytes = cid.bytes.mutated(using: &generator)
      guard let other = try? CID(bytes.span) else { continue }
      #expect(other.bytes == bytes, "\(generator)")
      #expect((other == cid) == (bytes == cid.bytes), "\(generator)")
    }
  }
}

extension CID {
  /// The CID with this binary form.
  fileprivate init(hex: String) throws {
    let bytes = try [UInt8](hex: hex)
    try self.init(bytes.span)
  }
}
