import IPLD
import TestSupport
import Testing

@Suite struct `The text of a CID` {
  private static let raw = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
  private static let version0 = "QmbWqxBEKC3P8tqsKc98xmWNzrzDtRLMiMPL8wBuTGsMnR"

  @Test func `is canonical in base 32`() throws {
    let cid = try CID(Self.raw)
    #expect(cid == CID(codec: .raw, hashing: Array("hello world".utf8).span))
    #expect(cid.description == Self.raw)
    #expect("\(cid)" == Self.raw)
  }

  @Test func `may be in base 58`() throws {
    let cid = try CID(Self.raw)
    let text = "z" + Base58.encode(cid.bytes)
    #expect(try CID(text) == cid)
    #expect(try CID(text).description == Self.raw)
    #expect(try CID("zdj7WWeQ43G6JJvLWQWZpyHuAMq6uYWRjkBXFad11vE2LHhQ7").codec == .dagPB)
  }

  @Test func `of version 0 is bare base 58`() throws {
    let cid = try CID(Self.version0)
    #expect(cid.version == .v0)
    #expect(cid.codec == .dagPB)
    #expect(cid.description == Self.version0)
    #expect(cid.bytes.prefix(2) == [0x12, 0x20])
  }

  @Test func `may be part of another text`() throws {
    let uri = "ipfs://\(Self.raw)/path"
    #expect(try CID(uri.dropFirst(7).prefix(59)).description == Self.raw)
  }

  @Test(
    arguments: [
      ("", .unknownMultibase, 0),
      (" ", .unknownMultibase, 0),
      ("b", .truncated, 0),
      ("z", .truncated, 0),
      ("baf", .notInAlphabet, 1),
      (" \(raw)", .unknownMultibase, 0),
      ("\(raw) ", .notInAlphabet, 1),
      ("\(raw)\n", .notInAlphabet, 1),
      ("\(raw)=", .notInAlphabet, 1),
      ("cid:\(raw)", .unknownMultibase, 0),
      ("ipfs://\(raw)", .unknownMultibase, 0),
      // Base 32 in capitals, base 16, base 64, base 36: other encodings of CIDs, which AT Protocol
      // does not use.
      (raw.uppercased(), .unknownMultibase, 0),
      ("b" + raw.dropFirst().uppercased(), .notInAlphabet, 1),
      (
        "f01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
        .unknownMultibase, 0
      ),
      ("mAVUSILlNJ7mTTT4IpS5S19p9q/rEhO/jelOA7pCI96zi783p", .unknownMultibase, 0),
      ("k", .unknownMultibase, 0),
      ("1", .unknownMultibase, 0),
      ("é", .unknownMultibase, 0),
      ("\0", .unknownMultibase, 0),
      // The last character of base 32 has two bits that say nothing, and they must be zero: e, then
      // f, g, h.
      (raw.dropLast() + "f", .notInAlphabet, 1),
      (raw.dropLast() + "g", .notInAlphabet, 1),
      (raw.dropLast() + "h", .notInAlphabet, 1),
      // A character less, a character more.
      ("\(raw.dropLast())", .notInAlphabet, 1),
      ("\(raw.dropLast(2))", .truncated, 35),
      ("\(raw)a", .notInAlphabet, 1),
      ("\(raw)aa", .trailingBytes, 36),
      ("z0", .notInAlphabet, 1),
      ("zO", .notInAlphabet, 1),
      // Version 0 has one text, without a prefix, of 46 characters.
      ("Qm", .unknownMultibase, 0),
      ("\(version0.dropLast())", .unknownMultibase, 0),
      ("\(version0)1", .unknownMultibase, 0),
      ("QM" + version0.dropFirst(2), .unknownMultibase, 0),
      (version0.dropLast() + "0", .notInAlphabet, 0),
      ("z\(version0)", .unknownVersion, 0),
      ("bciqmhyatpcbaudgqewaib4nzs6jwcm2bxsbmp7bcu4v6kcnfcg7blcq", .unknownVersion, 0),
      ("Qmzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", .unknownVersion, 0),
    ] as [(String, CIDError.Reason, Int)])
  func `is refused in any other spelling`(
    text: String, reason: CIDError.Reason, offset: Int
  ) {
    #expect(throws: CIDError(reason, offset: offset)) { try CID(text) }
  }

  @Test func `is refused when it is longer than any CID`() throws {
    let longest = CID(
      codec: Codec(rawValue: 1 << 63 - 1),
      multihash: Multihash(
        function: HashFunction(rawValue: 1 << 63 - 1),
        digest: [UInt8](repeating: 0xff, count: Multihash.maximumDigestLength)))
    #expect(try CID(longest.description) == longest)
    let long = "b" + String(repeating: "a", count: 10_000_000)
    #expect(throws: CIDError(.textTooLong, offset: 0)) { try CID(long) }
    // Base 58 takes time with the square of the length, so its limit is its own.
    let base58 = "z" + String(repeating: "2", count: Base58.maximumLength + 1)
    #expect(throws: CIDError(.notInAlphabet, offset: 1)) { try CID(base58) }
  }

  @Test func `with an accident is refused or the text of another CID`() throws {
    var generator = SeededGenerator()
    print("texts of CIDs: \(generator)")
    for _ in 0..<3000 {
      let cid = CID.random(using: &generator)
      let text = String(
        decoding: Array(cid.description.utf8).mutated(using: &generator), as: UTF8.self)
      guard let other = try? CID(text) else { continue }
      guard text.hasPrefix("b") || text.hasPrefix("Qm") else { continue }
      #expect(other.description == text, "\(generator)")
    }
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `AT Protocol's vectors of CID texts` {
  /// The lines of a vector file that are neither empty nor comments.
  ///
  /// Blanks at the ends of a line are part of the vector.
  private func lines(_ name: String) throws -> [String] {
    let text = try Corpus.text("atproto-interop-tests/syntax/\(name)")
    let lines = text.split(whereSeparator: \.isNewline).map(String.init)
      .filter { !$0.hasPrefix("#") && !$0.isEmpty }
    try #require(!lines.isEmpty)
    return lines
  }

  @Test func `that are invalid are refused`() throws {
    for line in try lines("cid_syntax_invalid.txt") {
      guard let cid = try? CID(line) else { continue }
      // A text of version 0 is a CID; that AT Protocol does not want it is for the data model to
      // say, and it does.
      #expect(cid.version == .v0, "\(line)")
      #expect(!cid.isATProtocolLink, "\(line)")
    }
  }

  /// The vectors test a pattern of letters and digits, which is all that AT Protocol's syntax asks
  /// for.
  ///
  /// Some are in other multibases and some are not CIDs at all: those need not be read.
  @Test func `that are valid and name SHA-256 are read`() throws {
    var found = 0
    for line in try lines("cid_syntax_valid.txt") {
      let bytes: [UInt8]? =
        switch line.utf8.first {
        case UInt8(ascii: "b"): Base32.decode(line.utf8.dropFirst())
        case UInt8(ascii: "z"): Base58.decode(line.utf8.dropFirst())
        default: nil
        }
      guard let bytes, bytes.count == 36, bytes[0] == 1, bytes[2] == 0x12, bytes[3] == 32 else {
        continue
      }
      found += 1
      let cid = try CID(line)
      #expect(cid.bytes == bytes, "\(line)")
      #expect(try CID(cid.description) == cid, "\(line)")
    }
    #expect(found > 0)
  }
}
