import ATProtocol
import IPLD
import Testing

@Suite struct `Searching a record for blobs` {
  private static let cid = CID.example(codec: .raw)
  private static let other = CID.example(1, codec: .raw)
  private static let typed = typedRef(cid)
  private static let legacy = legacyRef("\(other)")

  private static func typedRef(_ cid: CID, _ changes: [String: IPLDValue?] = [:]) -> IPLDValue {
    var map: IPLDMap = [
      "$type": .string("blob"), "ref": .link(cid), "mimeType": .string("image/jpeg"),
      "size": .integer(12345),
    ]
    for (key, value) in changes { map[key] = value }
    return .map(map)
  }

  private static func legacyRef(_ cid: String, _ changes: [String: IPLDValue?] = [:]) -> IPLDValue {
    var map: IPLDMap = ["cid": .string(cid), "mimeType": .string("image/png")]
    for (key, value) in changes { map[key] = value }
    return .map(map)
  }

  private struct Found: Equatable {
    var refs: [BlobRef] = []
    var malformed: [String] = []
    var isMap = false
    var cids: [CID] { refs.map(\.cid) }
  }

  private func scan(_ value: IPLDValue, profile: DAGCBORProfile = .atproto) throws -> Found {
    let bytes = try DAGCBOREncoder.encode(value)
    var scanner = BlobRefScanner(profile: profile)
    var found = Found()
    found.isMap = try scanner.scan(
      bytes.span, found: { found.refs.append($0) }, malformed: { found.malformed.append($0) })
    return found
  }

  @Test func `finds today's form with all it says`() throws {
    let found = try scan(.map(["avatar": Self.typed]))
    #expect(found.cids == [Self.cid])
    #expect(found.refs.first?.mimeType == "image/jpeg")
    #expect(found.refs.first?.size == 12345)
    #expect(found.refs.first?.isLegacy == false)
    #expect(found.malformed == [])
    #expect(found.isMap)
  }

  @Test func `finds the form of 2022`() throws {
    let found = try scan(.map(["avatar": Self.legacy]))
    #expect(found.cids == [Self.other])
    #expect(found.refs.first?.mimeType == "image/png")
    #expect(found.refs.first?.size == nil)
    #expect(found.refs.first?.isLegacy == true)
    #expect(found.malformed == [])
  }

  @Test func `finds a record that is nothing but a reference`() throws {
    #expect(try scan(Self.typed).cids == [Self.cid])
    #expect(try scan(Self.legacy).cids == [Self.other])
  }

  @Test func `finds both at any depth, in arrays, in any lexicon, in the order of the bytes`()
    throws
  {
    var deep = IPLDValue.array([Self.typed, .null, Self.legacy])
    for level in 0..<DAGCBORScanner.maximumDepth - 5 {
      deep = level.isMultiple(of: 2) ? .map(["a": deep]) : .array([.integer(1), deep])
    }
    let record: IPLDValue = .map([
      "$type": .string("org.example.unheardOf"), "z": deep,
      "aa": .map(["$type": .string("org.example.part"), "x": Self.legacy]),
    ])
    #expect(try scan(record).cids == [Self.cid, Self.other, Self.other])
  }

  @Test func `finds a reference inside of a reference`() throws {
    let outer = Self.typedRef(Self.cid, ["inner": Self.typedRef(Self.other)])
    #expect(try scan(outer).cids == [Self.other, Self.cid])
  }

  @Test func `gives each occurrence`() throws {
    #expect(try scan(.map(["a": .array([Self.typed, Self.typed])])).refs.count == 2)
  }

  @Test func `does without a media type and a size`() throws {
    let bare = Self.typedRef(Self.cid, ["mimeType": nil, "size": nil])
    let found = try scan(.map(["a": bare]))
    #expect(found.cids == [Self.cid])
    #expect(found.refs.first?.mimeType == nil)
    #expect(found.refs.first?.size == nil)
    let odd = Self.typedRef(Self.cid, ["mimeType": .integer(1), "size": .integer(-1)])
    #expect(try scan(.map(["a": odd])).refs == found.refs)
  }

  @Test(arguments: [
    typedRef(cid, ["ref": nil]), typedRef(cid, ["ref": .string("\(cid)")]),
    typedRef(cid, ["ref": .null]), typedRef(cid, ["$type": .string("blobs")]),
    typedRef(cid, ["$type": .string("Blob")]), typedRef(cid, ["$type": nil]),
    typedRef(cid, ["$type": .bytes(Array("blob".utf8))]),
    legacyRef("\(cid)", ["size": .integer(1)]),
    legacyRef("\(cid)", ["$type": .string("com.example.x")]),
    legacyRef("\(cid)", ["mimeType": nil]),
    legacyRef("\(cid)", ["mimeType": .integer(1)]), legacyRef("", ["cid": .link(cid)]),
    .array([.string("cid"), .string("\(cid)"), .string("mimeType"), .string("image/png")]),
    .map(["ref": .link(cid)]),
  ])
  func `does not take anything else for a reference`(_ value: IPLDValue) throws {
    let found = try scan(.map(["a": value]))
    #expect(found.refs == [])
    #expect(found.malformed == [])
  }

  @Test(arguments: ["", "x", "bafkrei", "not a cid at all"])
  func `reports the form of 2022 without a valid CID`(_ text: String) throws {
    let found = try scan(.map(["a": Self.legacyRef(text), "b": Self.typed]))
    #expect(found.cids == [Self.cid])
    #expect(found.malformed.count == 1)
  }

  @Test func `hands out and reports a reference to what is no blob`() throws {
    for value in [
      Self.typedRef(.example(2)), Self.legacyRef("\(CID.example(2))"),
    ] {
      let found = try scan(.map(["a": value]))
      #expect(found.cids == [.example(2)])
      #expect(found.malformed.count == 1)
    }
  }

  @Test func `hands out nothing of a record that breaks the profile's rules`() throws {
    let record = IPLDValue.map(["a": Self.typed, "b": .float(1.5)])
    #expect(throws: DAGCBORError.self) { try scan(record) }
    #expect(try scan(record, profile: .dagCBOR).cids == [Self.cid])
  }

  @Test func `says whether the record is a map`() throws {
    #expect(try scan(.map([:])).isMap)
    #expect(try !scan(.array([Self.typed])).isMap)
    #expect(try !scan(.null).isMap)
  }

  @Test func `starts anew with each record`() throws {
    var scanner = BlobRefScanner()
    var found = 0
    let good = try DAGCBOREncoder.encode(.map(["a": Self.typed]))
    for _ in 0..<3 {
      #expect(throws: DAGCBORError.self) {
        _ = try scanner.scan(Array(good.dropLast()).span, found: { _ in found += 1 })
      }
      _ = try scanner.scan(good.span, found: { _ in found += 1 })
    }
    #expect(found == 3)
  }
}
