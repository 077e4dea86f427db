import ATProtocol
import IPLD
import Testing

@Suite struct `The data model` {
  private static let raw = CID.example(codec: .raw)
  private static let record = CID.example()

  private static func blob(_ changes: [String: IPLDValue?]) -> IPLDValue {
    var map: IPLDMap = [
      "$type": .string("blob"), "ref": .link(raw), "mimeType": .string("image/png"),
      "size": .integer(1),
    ]
    for (key, value) in changes { map[key] = value }
    return .map(map)
  }

  @Test func `allows everything that AT Protocol can say`() throws {
    try DataModel.check(
      .map([
        "null": .null, "boolean": .boolean(true), "string": .string(""), "bytes": .bytes([]),
        "most": .integer(Int128(Int64.max)), "least": .integer(Int128(Int64.min)),
        "links": .array([.link(Self.raw), .link(Self.record)]), "empty": .map([:]),
        "blob": Self.blob([:]), "$other": .null, "": .array([]),
        "object": .map(["$type": .string("com.example.thing")]),
      ]))
  }

  @Test(
    arguments: [
      (.array([]), .notAMap, []),
      (.string("blah"), .notAMap, []),
      (.map(["a": .array([.null, .float(1)])]), .float, ["a", "1"]),
      (.map(["a": .integer(Int128(Int64.max) + 1)]), .integerOutOfRange, ["a"]),
      (.map(["a": .integer(Int128(Int64.min) - 1)]), .integerOutOfRange, ["a"]),
      (
        .map(["a": .link(CID.example(codec: .dagPB))]),
        .linkNotAllowed, ["a"]
      ),
      (.map(["$type": .null]), .malformedType, ["$type"]),
      (.map(["a": .map(["$type": .integer(1)])]), .malformedType, ["a", "$type"]),
      (.map(["$type": .string("")]), .malformedType, ["$type"]),
      (.map(["$link": .string("x")]), .reservedKey, ["$link"]),
      (.map(["a": .map(["$bytes": .null])]), .reservedKey, ["a", "$bytes"]),
      (.map(["b": blob(["ref": .link(record)])]), .malformedBlob, ["b", "ref"]),
      (.map(["b": blob(["ref": .string("\(raw)")])]), .malformedBlob, ["b", "ref"]),
      (.map(["b": blob(["ref": nil])]), .malformedBlob, ["b", "ref"]),
      (.map(["b": blob(["mimeType": nil])]), .malformedBlob, ["b", "mimeType"]),
      (.map(["b": blob(["mimeType": .string("")])]), .malformedBlob, ["b", "mimeType"]),
      (.map(["b": blob(["size": nil])]), .malformedBlob, ["b", "size"]),
      (.map(["b": blob(["size": .integer(0)])]), .malformedBlob, ["b", "size"]),
      (.map(["b": blob(["size": .string("1")])]), .malformedBlob, ["b", "size"]),
    ] as [(IPLDValue, DataModelError.Reason, [String])])
  func `refuses what it forbids, and says where`(
    _ value: IPLDValue, _ reason: DataModelError.Reason, _ path: [String]
  ) {
    #expect(throws: DataModelError(reason, path: path)) { try DataModel.check(value) }
  }

  @Test func `the place is a JSON pointer`() {
    let error = DataModelError(.float, path: ["a/b", "~", "0"])
    #expect(error.description == "a float, which AT Protocol does not allow, at /a~1b/~0/0")
    #expect(DataModelError(.notAMap).description == "the value is not a map")
  }

  @Test func `nests as deep as DAG-CBOR and no deeper`() throws {
    func nested(_ depth: Int) -> IPLDValue {
      .map(["a": (2..<depth).reduce(IPLDValue.array([])) { value, _ in .array([value]) }])
    }
    try DataModel.check(nested(DAGCBORScanner.maximumDepth))
    let tooDeep = #expect(throws: DataModelError.self) {
      try DataModel.check(nested(DAGCBORScanner.maximumDepth + 1))
    }
    #expect(tooDeep?.reason == .tooDeep)
    #expect(tooDeep?.path.count == DAGCBORScanner.maximumDepth)
  }
}
