import IPLD
import TestSupport
import Testing

/// One line of `multihash/tests/values/test_cases.csv`: `algorithm,bits,input,multihash`.
private struct MultihashVector: CustomStringConvertible {
  let algorithm: String
  let bits: Int
  let input: [UInt8]
  let multihash: [UInt8]

  var description: String { "\(algorithm) of \(bits) bits: \(Hex.encode(multihash))" }

  /// Every vector of every file that has them, whatever else the files are.
  static func all() throws -> [MultihashVector] {
    try Corpus.files(under: "multihash/tests/values", suffix: ".csv").flatMap { file in
      try Corpus.text(file).split(whereSeparator: \.isNewline).compactMap { line in
        let fields = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 4, let bits = Int(fields[1]) else { return nil as MultihashVector? }
        return MultihashVector(
          algorithm: fields[0], bits: bits, input: Array(fields[2].utf8),
          multihash: try [UInt8](hex: fields[3]))
      }
    }
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Multihash vectors` {
  @Test func `are read and written`() throws {
    let vectors = try MultihashVector.all()
    try #require(!vectors.isEmpty)
    let codes = try Self.multicodecs()
    for vector in vectors {
      var offset = 0
      let multihash = try Multihash(vector.multihash.span, at: &offset)
      #expect(offset == vector.multihash.count, "\(vector)")
      #expect(multihash.digest.count * 8 == vector.bits, "\(vector)")
      var written: [UInt8] = []
      multihash.append(to: &written)
      #expect(written == vector.multihash, "\(vector)")
      if let code = codes[vector.algorithm] {
        #expect(multihash.function.rawValue == code, "\(vector)")
      }
    }
  }

  @Test func `verify what can be verified and nothing else`() throws {
    let vectors = try MultihashVector.all()
    try #require(!vectors.isEmpty)
    for vector in vectors {
      var offset = 0
      let multihash = try Multihash(vector.multihash.span, at: &offset)
      let isSHA256 = vector.algorithm == "sha2-256" && vector.bits == 256
      let other = vector.input + [0]
      #expect(multihash.verify(vector.input.span) == (isSHA256 ? .matches : .cannotVerify))
      #expect(multihash.verify(other.span) == (isSHA256 ? .mismatch : .cannotVerify))
      #expect((multihash.sha256 != nil) == isSHA256, "\(vector)")
    }
  }

  /// The table has the codes that the library knows, under the names it knows them by.
  @Test func `agree with the multicodec table`() throws {
    let codes = try Self.multicodecs()
    #expect(codes["identity"] == HashFunction.identity.rawValue)
    #expect(codes["sha2-256"] == HashFunction.sha256.rawValue)
    #expect(codes["raw"] == Codec.raw.rawValue)
    #expect(codes["dag-pb"] == Codec.dagPB.rawValue)
    #expect(codes["dag-cbor"] == Codec.dagCBOR.rawValue)
  }

  /// Codes by name, from `multicodec/table.csv`: `name, tag, code, status, description`.
  private static func multicodecs() throws -> [String: UInt64] {
    var codes: [String: UInt64] = [:]
    for line in try Corpus.text("multicodec/table.csv").split(whereSeparator: \.isNewline) {
      let fields = line.split(separator: ",").map { $0.filter { $0 != " " } }
      guard fields.count >= 3, fields[2].hasPrefix("0x") else { continue }
      codes[fields[0]] = UInt64(fields[2].dropFirst(2), radix: 16)
    }
    try #require(!codes.isEmpty)
    return codes
  }
}

@Suite struct `A multihash` {
  private let message = Array("abc".utf8)

  private func read(_ bytes: [UInt8]) throws -> Multihash {
    var offset = 0
    let multihash = try Multihash(bytes.span, at: &offset)
    #expect(offset == bytes.count)
    return multihash
  }

  @Test func `of SHA-256 is the digest behind two bytes`() throws {
    let digest = SHA256.digest(of: message.span)
    let multihash = Multihash(digest)
    var written: [UInt8] = []
    multihash.append(to: &written)
    #expect(written == [0x12, 0x20] + digest.bytes)
    #expect(try read(written) == multihash)
    #expect(multihash == Multihash(function: .sha256, digest: digest.bytes))
    #expect(multihash.sha256 == digest)
    #expect(multihash.function == .sha256)
    #expect(multihash.verify(message) == .matches)
    #expect(multihash.verify([]) == .mismatch)
  }

  @Test func `of SHA-256 that is cut short proves nothing`() {
    let digest = SHA256.digest(of: message.span)
    let short = Multihash(function: .sha256, digest: Array(digest.bytes.dropLast()))
    #expect(short.sha256 == nil)
    #expect(short.verify(message) == .cannotVerify)
    let none = Multihash(function: .sha256, digest: [])
    #expect(none.verify([]) == .cannotVerify)
  }

  @Test func `of identity holds the bytes`() throws {
    for content in [[], [0], message, [UInt8](repeating: 7, count: 200)] {
      let multihash = Multihash(function: .identity, digest: content)
      #expect(multihash.verify(content) == .matches)
      #expect(multihash.verify(content + [0]) == .mismatch)
      if let last = content.last {
        #expect(multihash.verify(content.dropLast() + [last ^ 1]) == .mismatch)
        #expect(multihash.verify(Array(content.dropLast())) == .mismatch)
      }
      var written: [UInt8] = []
      multihash.append(to: &written)
      #expect(try read(written) == multihash)
    }
  }

  @Test func `of a function that is not known is carried along`() throws {
    let multihash = Multihash(function: HashFunction(rawValue: 0xb220), digest: [1, 2, 3])
    var written: [UInt8] = []
    multihash.append(to: &written)
    #expect(written == [0xa0, 0xe4, 0x02, 0x03, 1, 2, 3])
    #expect(try read(written) == multihash)
    #expect(multihash.verify([1, 2, 3]) == .cannotVerify)
  }

  @Test func `may be as long as the limit and no longer`() throws {
    let longest = [UInt8](repeating: 1, count: Multihash.maximumDigestLength)
    var written: [UInt8] = []
    Multihash(function: .identity, digest: longest).append(to: &written)
    #expect(try read(written).digest == longest)
    written = []
    Multihash(function: .identity, digest: longest + [1]).append(to: &written)
    #expect(throws: CIDError(.digestTooLong, offset: 1)) { try read(written) }
  }
}

extension Multihash {
  /// The same of an array, which may be a passing one.
  fileprivate func verify(_ bytes: [UInt8]) -> Verification { verify(bytes.span) }
}
