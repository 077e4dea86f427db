import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Every CAR there is` {
  /// What the expectations of a repository say about its CAR.
  private struct Expectation: Decodable {
    let file: String
    let sha256: String
    let error: String?
    let roots: [String]?
    let sections: Int?
    let distinct: Int?
    let mismatched: [String]?
    let codecs: [String: Int]?
    let rootIsFirst: Bool?
    let expected: String

    enum CodingKeys: String, CodingKey {
      case file, sha256, error, roots, codecs, expected
      case sections = "block_count"
      case distinct = "distinct_block_count"
      case mismatched = "hash_mismatch_blocks"
      case rootIsFirst = "root_is_first_block"
    }
  }

  @Test func `of a real repository has the expected frame`() throws {
    let files = Corpus.files(under: "repos", suffix: ".expected.json")
    var accepted = 0
    for file in files {
      let expectation = try Corpus.json(file, as: Expectation.self)
      let folder = file.split(separator: "/").dropLast().joined(separator: "/")
      let bytes = try Corpus.bytes("\(folder)/\(expectation.file)")
      try #require(SHA256.digest(of: bytes.span).description == expectation.sha256, "\(file)")
      let reading = CARReading(bytes)
      let mustFail = expectation.error != nil || expectation.mismatched?.isEmpty == false
      if mustFail { #expect(reading.error != nil, "\(file)") }
      // Other refusals are for what the blocks say.
      if expectation.expected.hasPrefix("reject") && reading.error != nil { continue }
      accepted += 1
      #expect(reading.error == nil, "\(file)")
      #expect(reading.roots?.map(\.description) == expectation.roots, "\(file)")
      let cids = reading.blocks.map(\.cid)
      #expect(cids.count == expectation.sections, "\(file)")
      #expect(Set(cids).count == expectation.distinct, "\(file)")
      #expect((cids.first == reading.roots?.first) == expectation.rootIsFirst, "\(file)")
      let codecs = cids.map { ("0x" + String($0.codec.rawValue, radix: 16), 1) }
      #expect(Dictionary(codecs, uniquingKeysWith: +) == expectation.codecs, "\(file)")
      #expect(reading.written == bytes, "\(file)")
    }
    #expect(accepted > 0)
  }

  @Test func `comes through a pipe as it lies on disk`() throws {
    let files = ["car", "repos", "mst-test-suite"].flatMap {
      Corpus.files(under: $0, suffix: ".car")
    }
    try #require(!files.isEmpty)
    for file in files {
      let bytes = try Corpus.bytes(file)
      let whole = CARReading(bytes)
      // Small chunks of large files would teach nothing new, slowly.
      for size in [1, 7, 4096] where bytes.count / size < 50_000 {
        #expect(CARReading(bytes, inChunksOf: size) == whole, "\(file), \(size) at a time")
      }
    }
  }

  @Test func `of a tree is well framed`() throws {
    let files = Corpus.files(under: "mst-test-suite/cars", suffix: ".car")
    try #require(!files.isEmpty)
    for file in files {
      let bytes = try Corpus.bytes(file)
      let reading = CARReading(bytes)
      #expect(reading.error == nil, "\(file)")
      #expect(reading.written == bytes, "\(file)")
      // A tree is written with its root, which the header names.
      let cids = Set(reading.blocks.map(\.cid))
      #expect(reading.roots?.allSatisfy(cids.contains) == true, "\(file)")
    }
  }

  @Test func `in a frame of the firehose is read`() throws {
    struct Frame: Decodable {
      struct Slice: Decodable {
        let sha256: String
        let sections: Int
        let isVerified: Bool

        enum CodingKeys: String, CodingKey {
          case sha256
          case sections = "block_count"
          case isVerified = "hash_ok"
        }
      }
      let file: String
      let type: String
      let operation: Int
      let commit: String?
      let car: Slice?

      enum CodingKeys: String, CodingKey {
        case file, commit, car
        case type = "t"
        case operation = "op"
      }
    }
    let frames = try Corpus.json("firehose/frames.expected.json", as: [Frame].self)
    try #require(frames.contains { $0.car != nil })
    for frame in frames {
      let bytes = try Corpus.bytes("firehose/frames/\(frame.file)")
      let (header, body) = try Self.items(bytes)
      #expect(header["op"]?.integer == frame.operation, "\(frame.file)")
      #expect(header["t"]?.string == frame.type, "\(frame.file)")
      let again = try DAGCBOREncoder.encode(header) + DAGCBOREncoder.encode(body)
      #expect(again == bytes, "\(frame.file)")
      guard let slice = frame.car else { continue }
      let car = try #require(body["blocks"]?.bytes, "\(frame.file)")
      #expect(SHA256.digest(of: car.span).description == slice.sha256, "\(frame.file)")
      let reading = CARReading(car)
      #expect((reading.error == nil) == slice.isVerified, "\(frame.file)")
      #expect(reading.blocks.count == slice.sections, "\(frame.file)")
      #expect(reading.roots?.first?.description == frame.commit, "\(frame.file)")
      #expect(reading.written == car, "\(frame.file)")
      for size in [1, 7, 4096] {
        #expect(CARReading(car, inChunksOf: size) == reading, "\(frame.file)")
      }
    }
  }

  /// A frame's header and body, which follow each other without a mark between them.
  private static func items(_ bytes: [UInt8]) throws -> (header: IPLDValue, body: IPLDValue) {
    var scanner = DAGCBORScanner()
    _ = try scanner.next(in: bytes.span)
    while scanner.depth > 0 { _ = try scanner.next(in: bytes.span) }
    let body = bytes[scanner.offset...]
    return (
      try DAGCBORDecoder.decode(bytes.span.extracting(0..<scanner.offset)),
      try DAGCBORDecoder.decode(body.span)
    )
  }
}
