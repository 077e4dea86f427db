import IPLD
import TestSupport
import Testing

/// One entry of `car/car-labels.json`: a CAR from elsewhere, and what an independent reader made of
/// it.
private struct CARLabel: Decodable, CustomStringConvertible {
  enum Verdict: String, Decodable {
    case accept, reject
  }

  let file: String
  let sha256: String
  /// The CAR itself, when the file is not the CAR but a text around it.
  let hex: String?
  let isVersion2: Bool
  let framing: Verdict
  let roots: [String]?
  let sections: Int?
  let distinct: Int?
  /// How many sections there are of each `v1/0x55/0x12`: version, codec, hash function.
  let kinds: [String: Int]?
  let mismatched: [String]?
  let hasRoots: [Bool]?
  /// SHA-256 of the lines `CID length`, in the order of the file.
  let blockListDigest: String?

  enum CodingKeys: String, CodingKey {
    case file, sha256, hex, roots, distinct
    case isVersion2 = "is_carv2"
    case framing = "framing_parser"
    case sections = "block_count"
    case kinds = "cid_kinds"
    case mismatched = "sha256_or_identity_mismatch"
    case hasRoots = "root_present"
    case blockListDigest = "block_list_sha256"
  }

  static func all() throws -> [CARLabel] {
    try Corpus.json("car/car-labels.json", as: [CARLabel].self)
  }

  var description: String { file }

  func bytes() throws -> [UInt8] {
    if let hex { return try [UInt8](hex: hex) }
    let bytes = try Corpus.bytes("car/\(file)")
    try #require(SHA256.digest(of: bytes.span).description == sha256, "\(file)")
    return bytes
  }
}

extension CID {
  /// `v1/0x55/0x12`: version, codec, hash function.
  fileprivate var kind: String {
    let codec = String(codec.rawValue, radix: 16)
    let function = String(multihash.function.rawValue, radix: 16)
    return "v\(version.rawValue)/0x\(codec)/0x\(function)"
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Other people's CARs` {
  @Test func `of version 1 are read as labelled`() throws {
    let labels = try CARLabel.all().filter { $0.framing == .accept && !$0.isVersion2 }
    try #require(!labels.isEmpty)
    for label in labels {
      let bytes = try label.bytes()
      let reading = CARReading(bytes, limits: .mapped, verifying: false)
      #expect(reading.error == nil, "\(label)")
      #expect(reading.roots?.map(\.description) == label.roots, "\(label)")
      let cids = reading.blocks.map(\.cid)
      #expect(cids.count == label.sections, "\(label)")
      #expect(Set(cids).count == label.distinct, "\(label)")
      let kinds = Dictionary(cids.map { ($0.kind, 1) }, uniquingKeysWith: +)
      #expect(kinds == label.kinds, "\(label)")
      let isPresent = reading.roots?.map(Set(cids).contains)
      #expect(isPresent == label.hasRoots, "\(label)")
      let lines = reading.digest { "\($0.cid) \($0.bytes.count)" }
      #expect(lines == label.blockListDigest, "\(label)")
      #expect(reading.written == bytes, "\(label)")
    }
  }

  @Test func `have the blocks that do not hash to their CIDs`() throws {
    let labels = try CARLabel.all().filter { $0.framing == .accept && !$0.isVersion2 }
    try #require(!labels.isEmpty)
    for label in labels {
      let bytes = try label.bytes()
      let mismatched = CARReading(bytes, limits: .mapped, verifying: false).blocks
        .filter { $0.cid.verify($0.bytes.span) == .mismatch }.map(\.cid)
      #expect(
        Set(mismatched.map(\.description)) == Set(label.mismatched ?? []), "\(label)")
      let verified = CARReading(bytes, limits: .mapped)
      #expect(verified.error?.reason == mismatched.first.map { .contentMismatch($0) }, "\(label)")
    }
  }

  /// The labels speak for a reader of version 1; the CAR inside one of version 2 is read here.
  @Test func `of version 2 are read for the CAR inside them`() throws {
    let labels = try CARLabel.all().filter(\.isVersion2)
    try #require(!labels.isEmpty)
    for label in labels {
      let bytes = try label.bytes()
      let payload = try CARVersion2.payload(of: bytes.span)
      #expect(payload.lowerBound >= CARVersion2.headerLength, "\(label)")
      let reading = CARReading(bytes, limits: .mapped)
      #expect(reading.error == nil, "\(label)")
      #expect(!reading.blocks.isEmpty, "\(label)")
      #expect(reading == CARReading(Array(bytes[payload])), "\(label)")
      #expect(reading.written == Array(bytes[payload]), "\(label)")
    }
  }

  @Test func `that are malformed are refused`() throws {
    let labels = try CARLabel.all().filter { $0.framing == .reject && !$0.isVersion2 }
    try #require(!labels.isEmpty)
    for label in labels {
      let bytes = try label.bytes()
      let reading = CARReading(bytes, limits: .mapped)
      let error = try #require(reading.error, "\(label)")
      #expect((0...bytes.count).contains(error.offset), "\(label): \(error)")
      for size in [1, 4096] {
        #expect(CARReading(bytes, inChunksOf: size, limits: .mapped) == reading, "\(label)")
      }
    }
  }

  @Test func `that AT Protocol's reference implementation made are read block by block`() throws {
    struct Fixture: Decodable {
      struct Member: Decodable {
        let cid: String
        let bytes: String
      }
      let root: String
      let blocks: [Member]
      let car: String
    }
    let fixtures = try Corpus.json(
      "car/bluesky-atproto-car-file-fixtures.json", as: [Fixture].self)
    try #require(!fixtures.isEmpty)
    for fixture in fixtures {
      let bytes = try [UInt8](base64: fixture.car)
      let blocks = try fixture.blocks.map {
        Block(cid: try CID($0.cid), bytes: try [UInt8](base64: $0.bytes))
      }
      let reading = CARReading(bytes)
      #expect(reading.error == nil)
      #expect(reading.roots?.map(\.description) == [fixture.root])
      #expect(reading.blocks == blocks)
      #expect(reading.written == bytes)
    }
  }
}
