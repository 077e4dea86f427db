import IPLD
import TestSupport
import Testing

/// One vector of [dasl-testing](https://github.com/hyphacoop/dasl-testing).
private struct DASLVector: Decodable, CustomStringConvertible {
  enum Kind: String, Decodable {
    /// Decodes, and encodes to the same bytes.
    case roundtrip
    /// Does not decode.
    case refusedIn = "invalid_in"
    /// What the bytes say must not be encoded.
    case refusedOut = "invalid_out"
  }

  let type: Kind
  let data: String
  let name: String
  /// The specifications that the vector speaks for; `basic` means all of them.
  let tags: [String]

  var description: String { "\(name) (\(type), \(data))" }

  static func all() throws -> [DASLVector] {
    try Corpus.files(under: "cbor/dasl-testing/fixtures/cbor", suffix: ".json").flatMap {
      try Corpus.json($0, as: [DASLVector].self)
    }
  }

  func speaks(for specifications: Set<String>) -> Bool {
    !specifications.isDisjoint(with: tags)
  }

  /// The float that the bytes are, of whatever width.
  func float() throws -> Double? {
    let bytes = try [UInt8](hex: data)
    let bits = bytes.dropFirst().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return switch (bytes.first, bytes.count) {
    case (0xf9, 3): Double(Float16(bitPattern: UInt16(bits)))
    case (0xfa, 5): Double(Float(bitPattern: UInt32(bits)))
    case (0xfb, 9): Double(bitPattern: bits)
    default: nil
    }
  }

  /// DASL reads DAG-CBOR's "IEEE 754 special values are not allowed" so as to include negative
  /// zero; the DAG-CBOR specification names NaN and the infinities only, negative zero has one
  /// encoding there, and it is accepted.
  func isNegativeZero() throws -> Bool {
    try float().map { $0 == 0 && $0.sign == .minus } ?? false
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `DASL's vectors` {
  @Test func `for DAG-CBOR that must survive do survive`() throws {
    // A CID that DASL allows is one that IPLD allows.
    let vectors = try DASLVector.all().filter {
      $0.type == .roundtrip && $0.speaks(for: ["dag-cbor", "basic", "dasl-cid"])
    }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      let reading = DAGCBORReading(try [UInt8](hex: vector.data))
      #expect(reading.error == nil, "\(vector)")
      #expect(reading.inconsistency == nil, "\(vector)")
    }
  }

  @Test func `for DAG-CBOR that must be refused are refused`() throws {
    let vectors = try DASLVector.all().filter {
      $0.type == .refusedIn && $0.speaks(for: ["dag-cbor", "basic"])
    }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      let reading = DAGCBORReading(try [UInt8](hex: vector.data))
      #expect(reading.isAccepted == (try vector.isNegativeZero()), "\(vector)")
      #expect(reading.inconsistency == nil, "\(vector)")
    }
  }

  /// Such CIDs (version 0, other codecs, other hashes, other lengths) are legal in IPLD; AT
  /// Protocol refuses them too.
  @Test func `of CIDs that DASL refuses are refused as AT Protocol's`() throws {
    let vectors = try DASLVector.all().filter {
      $0.type == .refusedIn && $0.speaks(for: ["dasl-cid"])
    }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      let reading = DAGCBORReading(try [UInt8](hex: vector.data), .atproto)
      #expect(reading.error != nil, "\(vector)")
      #expect(reading.inconsistency == nil, "\(vector)")
    }
  }

  /// Only floats get as far as our encoder: a value has no way to hold the others, and the decoder
  /// makes none of them.
  @Test func `of values that must not be encoded are not`() throws {
    let vectors = try DASLVector.all().filter {
      $0.type == .refusedOut && $0.speaks(for: ["dag-cbor", "basic"])
    }
    try #require(!vectors.isEmpty)
    for vector in vectors where !(try vector.isNegativeZero()) {
      #expect(!DAGCBORReading(try [UInt8](hex: vector.data)).isAccepted, "\(vector)")
      if let float = try vector.float() {
        #expect(throws: DAGCBORError(.notFinite, offset: 0), "\(vector)") {
          try DAGCBOREncoder.encode(.float(float))
        }
      }
    }
  }
}
