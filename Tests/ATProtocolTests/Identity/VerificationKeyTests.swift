import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A verification key` {
  @Test(arguments: SampleKey.all)
  func `is the same from each form it is written in`(_ sample: SampleKey) throws {
    let key = try VerificationKey(didKey: sample.didKey)
    #expect(key.curve == sample.curve)
    #expect(key.compressedPoint.count == 33)
    #expect(key.didKey == sample.didKey)
    #expect("did:key:" + key.multikey == sample.didKey)
    #expect(try VerificationKey(multikey: key.multikey) == key)
    #expect(try VerificationKey(legacyMultibase: sample.legacyCompressed, on: sample.curve) == key)
    #expect(
      try VerificationKey(legacyMultibase: sample.legacyUncompressed, on: sample.curve) == key)
  }

  @Test func `of one curve is not a key of the other`() throws {
    #expect(throws: VerificationKeyError.notOnCurve) {
      try VerificationKey(legacyMultibase: SampleKey.k256.legacyUncompressed, on: .p256)
    }
    #expect(throws: VerificationKeyError.notOnCurve) {
      try VerificationKey(legacyMultibase: SampleKey.p256.legacyUncompressed, on: .k256)
    }
  }

  @Test func `has a point on the curve`() throws {
    // There is no point with x = 5 on secp256k1, and none with x = 0 and y = 1 on either.
    let x5 = [2] + [UInt8](repeating: 0, count: 31) + [5]
    #expect(throws: VerificationKeyError.notOnCurve) { try VerificationKey(point: x5, on: .k256) }
    let beside = [4] + [UInt8](repeating: 0, count: 63) + [1]
    for curve in VerificationKey.Curve.allCases {
      #expect(throws: VerificationKeyError.notOnCurve) {
        try VerificationKey(point: beside, on: curve)
      }
    }
  }

  @Test func `has one of two forms`() throws {
    let point = try VerificationKey(didKey: SampleKey.k256.didKey).compressedPoint
    let malformed: [[UInt8]] = [
      [], [0], Array(point.dropLast()), point + [0], [4] + point.dropFirst(),
      [5] + point.dropFirst(), [UInt8](repeating: 4, count: 64),
    ]
    for point in malformed {
      #expect(throws: VerificationKeyError.malformedPoint) {
        try VerificationKey(point: point, on: .k256)
      }
    }
    // The hybrid forms, 6 and 7, are those of other standards.
    let text = SampleKey.k256.legacyUncompressed
    var full = try #require(Base58.decode(Array(text.utf8.dropFirst())))
    full[0] = 6 | full[64] & 1
    #expect(throws: VerificationKeyError.malformedPoint) {
      try VerificationKey(point: full, on: .k256)
    }
  }

  @Test func `as a Multikey is compressed`() throws {
    let text = SampleKey.k256.legacyUncompressed
    let full = try #require(Base58.decode(Array(text.utf8.dropFirst())))
    #expect(throws: VerificationKeyError.malformedPoint) {
      try VerificationKey(multikey: "z" + Base58.encode([0xe7, 0x01] + full))
    }
  }

  @Test(
    arguments: [
      ("", .notADIDKey), ("did:web:example.com", .notADIDKey),
      ("zQ3she4kaQ448PnMgnWLrDxKj4fnLBeQbp8NZxEzET5EF28vf", .notADIDKey),
      ("did:key:", .notBase58), ("did:key:mQ3she4kaQ", .notBase58), ("did:key:z0OIl", .notBase58),
      ("did:key:z" + String(repeating: "2", count: 600), .notBase58),
      ("did:key:z", .unknownCurve),
      // An Ed25519 key, as other networks use.
      ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", .unknownCurve),
    ] as [(String, VerificationKeyError)])
  func `from text that is none says why`(_ text: String, _ error: VerificationKeyError) {
    #expect(throws: error) { try VerificationKey(didKey: text) }
    #expect(!error.description.isEmpty)
  }
}

@Suite struct `A signature` {
  private func verifies(_ signature: String, _ message: [UInt8], by sample: SampleKey) throws
    -> Bool
  {
    let key = try VerificationKey(didKey: sample.didKey)
    let signature = try [UInt8](hex: signature)
    return key.verifies(signature, of: message)
  }

  @Test(arguments: SampleKey.all)
  func `of the key's owner is recognised`(_ sample: SampleKey) throws {
    #expect(try verifies(sample.lowSignature, SampleKey.message, by: sample))
  }

  @Test(arguments: SampleKey.all)
  func `with the higher s is refused`(_ sample: SampleKey) throws {
    #expect(!(try verifies(sample.highSignature, SampleKey.message, by: sample)))
  }

  @Test(arguments: SampleKey.all)
  func `of another message or another key is refused`(_ sample: SampleKey) throws {
    #expect(!(try verifies(sample.lowSignature, SampleKey.message + [0], by: sample)))
    #expect(!(try verifies(sample.lowSignature, [], by: sample)))
    let other = sample.curve == .k256 ? SampleKey.p256 : SampleKey.k256
    #expect(!(try verifies(other.lowSignature, SampleKey.message, by: sample)))
  }

  @Test(arguments: SampleKey.all)
  func `with any bit changed is refused`(_ sample: SampleKey) throws {
    let key = try VerificationKey(didKey: sample.didKey)
    let signature = try [UInt8](hex: sample.lowSignature)
    for index in signature.indices {
      var changed = signature
      changed[index] ^= 1 << UInt8(index % 8)
      #expect(!key.verifies(changed, of: SampleKey.message))
    }
  }

  @Test(arguments: SampleKey.all)
  func `has 64 bytes, and neither number is zero`(_ sample: SampleKey) throws {
    let key = try VerificationKey(didKey: sample.didKey)
    let signature = try [UInt8](hex: sample.lowSignature)
    let zero = [UInt8](repeating: 0, count: 32)
    let others: [[UInt8]] = [
      [], Array(signature.dropLast()), signature + [0], zero + zero, zero + signature[32...],
      signature[..<32] + zero, [UInt8](repeating: 0xff, count: 32) + signature[32...],
    ]
    for other in others { #expect(!key.verifies(other, of: SampleKey.message)) }
  }
}
