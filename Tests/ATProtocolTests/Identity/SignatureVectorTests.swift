import ATProtocol
import IPLD
import TestSupport
import Testing

/// A line of `signature-fixtures.json` of AT Protocol's interoperability tests.
private struct SignatureFixture: Decodable, Sendable, CustomTestStringConvertible {
  let comment: String
  let messageBase64: String
  let didDocSuite: String
  let publicKeyDid: String
  let publicKeyMultibase: String
  let signatureBase64: String
  let validSignature: Bool

  var testDescription: String { comment }

  static let all =
    (try? Corpus.json(
      "atproto-interop-tests/crypto/signature-fixtures.json", as: [Self].self)) ?? []
}

/// A line of Wycheproof's vectors as AT Protocol has to take them.
private struct WycheproofVector: Decodable, Sendable, CustomTestStringConvertible {
  let file: String
  let tcId: Int
  let did_key: String
  let msg_hex: String
  let sig_hex: String
  let atproto_expected: String
  let reason: String?

  var testDescription: String { "\(file) \(tcId)" }

  static let all =
    (try? Corpus.json("crypto/wycheproof-atproto.json", as: [Self].self)) ?? []
}

private struct DIDKeyVector: Decodable, Sendable {
  let publicDidKey: String
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `The corpus's signatures` {
  @Test func `are there`() {
    #expect(SignatureFixture.all.count >= 6)
    #expect(WycheproofVector.all.count >= 200)
    #expect(Set(WycheproofVector.all.map(\.atproto_expected)) == ["accept", "reject"])
  }

  @Test(arguments: SignatureFixture.all)
  fileprivate func `of the interoperability tests are taken as they have to be`(
    _ vector: SignatureFixture
  ) throws {
    let key = try VerificationKey(didKey: vector.publicKeyDid)
    let curve: VerificationKey.Curve =
      vector.didDocSuite == "EcdsaSecp256k1VerificationKey2019" ? .k256 : .p256
    #expect(try VerificationKey(legacyMultibase: vector.publicKeyMultibase, on: curve) == key)
    let message = try [UInt8](base64: vector.messageBase64)
    // What is not base 64 to begin with has been refused before.
    let signature = (try? [UInt8](base64: vector.signatureBase64)) ?? []
    #expect(key.verifies(signature, of: message) == vector.validSignature)
  }

  @Test(arguments: WycheproofVector.all)
  fileprivate func `of Wycheproof are taken as they have to be`(_ vector: WycheproofVector) throws {
    let key = try VerificationKey(didKey: vector.did_key)
    #expect(key.didKey == vector.did_key)
    let message = try [UInt8](hex: vector.msg_hex)
    let signature = try [UInt8](hex: vector.sig_hex)
    #expect(
      key.verifies(signature, of: message) == (vector.atproto_expected == "accept"),
      "\(vector.reason ?? "")")
  }

  @Test(arguments: [("K256", VerificationKey.Curve.k256), ("P256", .p256)])
  func `come from keys that are read and written`(_ name: String, _ curve: VerificationKey.Curve)
    throws
  {
    let vectors = try Corpus.json(
      "atproto-interop-tests/crypto/w3c_didkey_\(name).json", as: [DIDKeyVector].self)
    #expect(!vectors.isEmpty)
    for vector in vectors {
      let key = try VerificationKey(didKey: vector.publicDidKey)
      #expect(key.curve == curve)
      #expect(key.didKey == vector.publicDidKey)
    }
  }
}

/// What a `*.expected.json` says about the signature.
private struct ExpectedSignature: Decodable, Sendable {
  struct Signature: Decodable, Sendable {
    struct LowS: Decodable, Sendable {
      let k256: Bool
    }
    let unsigned_commit_sha256: String
    let low_s: LowS
    let result: String
    let curve: String?
    let did_key: String?
  }
  let file: String
  let signature: Signature?
}

private struct SignedRepository: Sendable, CustomTestStringConvertible {
  let path: String
  let signature: ExpectedSignature.Signature

  var testDescription: String { path }

  static let all: [Self] = Corpus.files(under: "repos", suffix: ".expected.json").compactMap {
    guard let expected = try? Corpus.json($0, as: ExpectedSignature.self),
      let signature = expected.signature
    else { return nil }
    let folder = $0.split(separator: "/").dropLast().joined(separator: "/")
    return Self(path: "\(folder)/\(expected.file)", signature: signature)
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `The corpus's commits` {
  private func commit(_ path: String) throws -> Commit {
    let bytes = try Corpus.bytes(path)
    let (roots, blocks) = try readCAR(bytes)
    let block = try #require(roots.first.flatMap { blocks[$0] })
    return try Commit(block.span)
  }

  @Test(arguments: SignedRepository.all)
  fileprivate func `are signed as is expected`(_ vector: SignedRepository) throws {
    let commit = try commit(vector.path)
    let unsigned = commit.unsignedBytes
    let digest = SHA256.digest(of: unsigned.span)
    #expect(digest.description == vector.signature.unsigned_commit_sha256)
    if let text = vector.signature.did_key {
      let key = try VerificationKey(didKey: text)
      #expect(key.curve.rawValue == vector.signature.curve)
      #expect(commit.isSigned(by: key) == (vector.signature.result == "valid"))
      #expect(!commit.isSigned(by: try VerificationKey(didKey: SampleKey.k256.didKey)))
    }
  }

  @Test func `with a key to check them by are many`() {
    #expect(SignedRepository.all.filter { $0.signature.did_key != nil }.count >= 15)
  }

  @Test(
    arguments: [
      ("repos/bsky.app/did.json", "repos/bsky.app/bsky.app.3lvzjbqtnva2s.car"),
      (
        "repos/wish.freakybob.site/wish.freakybob.site.json",
        "repos/wish.freakybob.site/wish.freakybob.site.3lza32c6t2b2s.car"
      ),
    ])
  func `are signed with the key of the DID document`(_ document: String, _ car: String) throws {
    let bytes = try Corpus.bytes(document)
    let document = try DIDDocument(bytes.span)
    let commit = try commit(car)
    #expect(document.id == commit.did)
    #expect(commit.isSigned(by: try #require(document.signingKey)))
  }

  @Test func `of before a change of the key are signed with an earlier one of the log`() throws {
    let document = try Corpus.bytes("repos/wish.freakybob.site/wish.freakybob.site.json")
    let key = try #require(try DIDDocument(document.span).signingKey)
    let old = try commit("repos/wish.freakybob.site/wish.freakybob.site.3ly53l5u7va2h.car")
    #expect(!old.isSigned(by: key))
  }
}
