import ATProtocol
import Foundation
import IPLD
import TestSupport
import Testing

@Suite struct `A private key that is made` {
  private static let curves = VerificationKey.Curve.allCases

  @Test(arguments: curves)
  func `comes back from PEM, in the clear and encrypted`(_ curve: VerificationKey.Curve) throws {
    let key = try PrivateKey.generate(on: curve)
    #expect(key.verificationKey.curve == curve)
    let plain = try key.pem()
    #expect(try PrivateKey(pem: plain).verificationKey == key.verificationKey)
    let passphrase = Array("correct horse".utf8)
    let encrypted = try key.pem(passphrase: passphrase)
    #expect(
      try PrivateKey(pem: encrypted, passphrase: passphrase).verificationKey
        == key.verificationKey)
    #expect(throws: PrivateKey.Fault.encrypted) { try PrivateKey(pem: encrypted) }
    #expect(throws: PrivateKey.Fault.wrongPassphrase) {
      try PrivateKey(pem: encrypted, passphrase: Array("incorrect".utf8))
    }
    #expect(String(decoding: encrypted, as: UTF8.self).contains("ENCRYPTED PRIVATE KEY"))
  }

  @Test(arguments: curves)
  func `comes back from the form that atproto's tools print`(_ curve: VerificationKey.Curve) throws
  {
    let key = try PrivateKey.generate(on: curve)
    let text = try key.multikey()
    // The greatest keys on P-256 begin with z42u.
    #expect(text.hasPrefix(curve == .k256 ? "z3vL" : "z42"), "\(text)")
    let again = try PrivateKey(multikey: text)
    #expect(again.verificationKey == key.verificationKey)
    let message = Array("signed".utf8)
    let signature = try again.sign(message.span)
    let isValid = key.verificationKey.verifies(signature, of: message.span)
    #expect(isValid)
    let file = Array("# of somebody\n\(text)\n".utf8)
    #expect(try PrivateKey(text: file).verificationKey == key.verificationKey)
    let pem = Array("# of somebody\n".utf8) + (try key.pem())
    #expect(try PrivateKey(text: pem).verificationKey == key.verificationKey)
  }

  @Test(arguments: [
    "", "# the server's\n", "PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX=", "export K=\"",
  ])
  func `comes from the digits in which servers keep it`(_ before: String) throws {
    let digits = String(repeating: "0", count: 63) + "1"
    let after = before.hasSuffix("\"") ? "\"\n" : " \n\n"
    let one = try PrivateKey(
      multikey: "z" + Base58.encode([0x81, 0x26] + [UInt8](repeating: 0, count: 31) + [1]))
    let key = try PrivateKey(text: Array((before + digits + after).utf8))
    #expect(key.verificationKey == one.verificationKey)
  }

  @Test(arguments: [
    String(repeating: "0", count: 64), String(repeating: "f", count: 64),
    String(repeating: "1", count: 63), String(repeating: "1", count: 66),
    String(repeating: "g", count: 64), String(repeating: "1", count: 64) + "\nB=2", "",
  ])
  func `comes from no other digits`(_ text: String) {
    #expect(throws: PrivateKey.Fault.notAKey) { try PrivateKey(text: Array(text.utf8)) }
  }

  /// The generators of the curves (SEC 2), which are public: the public keys of the number 1.
  @Test func `spells the public key that others find for it`() throws {
    // The number 1: its point is the generator of the curve.
    let one = [UInt8](repeating: 0, count: 31) + [1]
    let k256 = try PrivateKey(multikey: "z" + Base58.encode([0x81, 0x26] + one))
    #expect(
      k256.verificationKey.compressedPoint.map { String(format: "%02x", $0) }.joined()
        == "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
    let p256 = try PrivateKey(multikey: "z" + Base58.encode([0x86, 0x26] + one))
    #expect(
      p256.verificationKey.compressedPoint.map { String(format: "%02x", $0) }.joined()
        == "036b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296")
  }

  @Test(arguments: [
    "", "z", "z3vL", "not a key", "z42tmZxD2mi1TfMKSFrsRfednwdaaPNZiiWHP4MPgcvXkDWKX0",
    "zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
  ])
  func `is none if it is spelled otherwise`(_ text: String) {
    #expect(throws: PrivateKey.Fault.self) { try PrivateKey(multikey: text) }
  }

  /// Numbers that are not keys: nothing, and the order of the curve.
  @Test func `is none if its number is none of the curve's`() {
    let zero = [UInt8](repeating: 0, count: 32)
    #expect(throws: PrivateKey.Fault.self) {
      try PrivateKey(multikey: "z" + Base58.encode([0x81, 0x26] + zero))
    }
    let large = [UInt8](repeating: 0xff, count: 32)
    #expect(throws: PrivateKey.Fault.self) {
      try PrivateKey(multikey: "z" + Base58.encode([0x86, 0x26] + large))
    }
  }
}
