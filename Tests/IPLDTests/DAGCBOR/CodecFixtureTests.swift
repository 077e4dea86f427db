import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `IPLD's codec fixtures` {
  static let folder = "cbor/ipld-codec-fixtures"

  /// A file of bytes that is called after their CID and their codec.
  struct Fixture: CustomStringConvertible {
    let path: String
    let cid: CID

    /// Nil when the file is not called so.
    init?(_ path: String) {
      guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."),
        let cid = try? CID(name[..<dot])
      else { return nil }
      self.path = path
      self.cid = cid
    }

    var description: String { path }
  }

  @Test func `hash to the CIDs in their names, whatever their codec`() throws {
    let files = Corpus.files(under: "\(Self.folder)/fixtures", suffix: "")
    let fixtures = files.compactMap(Fixture.init)
    try #require(!fixtures.isEmpty)
    for fixture in fixtures {
      let bytes = try Corpus.bytes(fixture.path)
      #expect(fixture.cid.verify(bytes.span) == .matches, "\(fixture)")
      #expect(fixture.cid.verify((bytes + [0]).span) == .mismatch, "\(fixture)")
    }
  }

  @Test func `of DAG-CBOR decode, and encode to the same bytes`() throws {
    let files = Corpus.files(under: "\(Self.folder)/fixtures", suffix: ".dag-cbor")
    try #require(!files.isEmpty)
    for file in files {
      let fixture = try #require(Fixture(file), "\(file)")
      #expect(fixture.cid.codec == .dagCBOR, "\(file)")
      let bytes = try Corpus.bytes(file)
      let reading = DAGCBORReading(bytes)
      #expect(reading.error == nil, "\(file)")
      #expect(reading.inconsistency == nil, "\(file)")
      #expect(CID(codec: .dagCBOR, hashing: bytes.span) == fixture.cid, "\(file)")
    }
  }

  @Test func `that must not decode do not`() throws {
    struct Negative: Decodable {
      let name: String
      let hex: String
    }
    let files = Corpus.files(
      under: "\(Self.folder)/negative-fixtures/dag-cbor/decode", suffix: ".json")
    let vectors = try files.flatMap { try Corpus.json($0, as: [Negative].self) }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      let reading = DAGCBORReading(try [UInt8](hex: vector.hex))
      #expect(reading.error != nil, "\(vector.name)")
      #expect(reading.inconsistency == nil, "\(vector.name)")
    }
  }
}
