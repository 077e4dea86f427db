import Age
import CZlib
import IPLD
import TestSupport
import Testing

/// One of the conformance vectors of C2SP (CCTV, `age/testdata`): lines of keys and values, an
/// empty line, and an age file.
private struct Vector: CustomTestStringConvertible, Sendable {
  let name: String
  /// The expected result.
  let expected: String
  /// The SHA-256 in hexadecimal of what is released, also where the payload proves damaged.
  let payload: String?
  let identities: [String]
  let passphrases: [String]
  let isArmored: Bool
  let file: [UInt8]

  var testDescription: String { name }

  init(_ path: String) throws {
    let bytes = try Corpus.bytes(path)
    name = String(path.split(separator: "/").last ?? "")
    let end = try #require(
      (1..<bytes.count).first { bytes[$0] == 0x0a && bytes[$0 - 1] == 0x0a })
    let lines = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\n")
    func values(_ key: String) -> [String] {
      lines.filter { $0.hasPrefix("\(key): ") }.map { String($0.dropFirst(key.utf8.count + 2)) }
    }
    expected = try #require(values("expect").first)
    payload = values("payload").first
    identities = values("identity")
    passphrases = values("passphrase")
    isArmored = values("armored") == ["yes"]
    let file = Array(bytes[(end + 1)...])
    self.file = values("compressed") == ["zlib"] ? try inflated(file) : file
  }

  /// Recipients that are post-quantum are a kind that is unknown here.
  static let paths = Corpus.files(under: "age/vectors", suffix: "")
  static func isKnown(_ path: String) -> Bool { !path.contains("hybrid") }
}

/// What `compress` of zlib made smaller.
private func inflated(_ bytes: [UInt8]) throws -> [UInt8] {
  var content = [UInt8](repeating: 0, count: 1 << 25)
  var count = uLongf(content.count)
  let status = unsafe uncompress(&content, &count, bytes, uLong(bytes.count))
  try #require(status == Z_OK)
  return Array(content[..<Int(count)])
}

/// The result of opening a vector, in the words of the vectors.
private struct Outcome: Equatable {
  var result: String
  var released: [UInt8]?

  init(_ vector: Vector) throws {
    do {
      let file = vector.isArmored ? try AgeArmor.decode(vector.file.span) : vector.file
      let header = try AgeHeader(parsing: file.span)
      let fileKey = try Self.unwrap(header, vector)
      let start = header.length + AgePayload.nonceLength
      guard file.count >= start else { throw AgeError.truncatedHeader }
      var payload = try AgePayload(
        fileKey: fileKey, nonce: Array(file[header.length..<start]))
      var released: [UInt8] = []
      result = "success"
      do {
        try Self.release(Array(file[start...]), &payload, &released)
      } catch {
        result = "payload failure"
      }
      self.released = released
      // The call that opens it all comes to the same.
      let whole = Result { () throws(AgeError) in
        if let phrase = vector.passphrases.first {
          try AgeFile.open(vector.file.span, with: passphrase(phrase))
        } else {
          try AgeFile.open(vector.file.span, with: identities(vector.identities))
        }
      }
      #expect((try? whole.get()) == (result == "success" ? released : nil))
    } catch {
      result = Self.word(error)
    }
  }

  private static func unwrap(_ header: AgeHeader, _ vector: Vector) throws(AgeError) -> SecretBytes
  {
    if let phrase = vector.passphrases.first {
      return try header.unwrap(with: passphrase(phrase))
    }
    return try header.unwrap(with: identities(vector.identities))
  }

  /// Opens chunk after chunk as from a stream whose length is not known: a full chunk is the last
  /// if it opens as such.
  private static func release(
    _ sealed: [UInt8], _ payload: inout AgePayload, _ released: inout [UInt8]
  ) throws(AgeError) {
    var (offset, index) = (0, UInt64(0))
    var buffer = [UInt8](repeating: 0, count: AgePayload.chunkLength)
    var isAtEnd = false
    while !isAtEnd {
      let end = min(offset + AgePayload.sealedChunkLength, sealed.count)
      let chunk = Array(sealed[offset..<end])
      isAtEnd = chunk.count < AgePayload.sealedChunkLength
      var target = buffer.mutableSpan
      let count: Int
      do throws(AgeError) {
        count = try payload.open(chunk.span, index: index, isLast: isAtEnd, into: &target)
      } catch {
        guard !isAtEnd else { throw error }
        count = try payload.open(chunk.span, index: index, isLast: true, into: &target)
        isAtEnd = true
      }
      released += buffer[..<count]
      (offset, index) = (end, index + 1)
    }
    guard offset == sealed.count else { throw .damagedChunk(index) }
  }

  private static func word(_ error: any Error) -> String {
    switch error as? AgeError {
    case .malformedArmor: "armor failure"
    case .notAnAgeFile, .unsupportedVersion, .malformedHeader, .truncatedHeader,
      .workFactorTooHigh:
      "header failure"
    case .forgedHeader: "HMAC failure"
    case .noIdentityMatches, .wrongPassphrase, .notSealedWithPassphrase: "no match"
    default: "\(error)"
    }
  }
}

@Suite(.enabled(if: Corpus.isPresent, Comment(rawValue: Corpus.absence)))
struct `The vectors of C2SP for age` {
  @Test(arguments: Vector.paths.filter(Vector.isKnown))
  func `come out as they say`(_ path: String) throws {
    let vector = try Vector(path)
    let outcome = try Outcome(vector)
    #expect(outcome.result == vector.expected)
    if let payload = vector.payload {
      let released = try #require(outcome.released)
      #expect(SHA256.digest(of: released.span).description == payload)
    }
  }

  @Test func `are all here, 19 of 143 of them of a kind that is unknown`() {
    let known = Vector.paths.filter(Vector.isKnown)
    #expect(Vector.paths.count == 143)
    #expect(known.count == 124)
  }
}
