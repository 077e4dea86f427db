import ATProtocol
import IPLD
import Testing

@Suite struct `A tree node` {
  private static let link = IPLDValue.link(.example())

  private static func entry(_ changes: [String: IPLDValue?] = [:]) -> IPLDValue {
    var map: IPLDMap = ["k": .bytes([1, 2, 3]), "p": .integer(0), "t": .null, "v": link]
    for (key, value) in changes { map[key] = value }
    return .map(map)
  }

  private static func node(_ entries: [IPLDValue], left: IPLDValue = .null) -> IPLDValue {
    .map(["e": .array(entries), "l": left])
  }

  private func read(_ value: IPLDValue) throws -> MSTNode {
    try read(try DAGCBOREncoder.encode(value))
  }

  private func read(_ bytes: [UInt8]) throws -> MSTNode { try MSTNode(bytes.span) }

  @Test func `has a left subtree, and entries with rests of keys`() throws {
    let node = try read(
      Self.node(
        [
          Self.entry(),
          Self.entry([
            "k": .bytes([UInt8](repeating: 9, count: 300)), "p": .integer(1000),
            "t": .link(.example(2)),
          ]),
          Self.entry(["k": .bytes([]), "p": .integer(70_000)]),
        ], left: .link(.example(1))))
    #expect(node.left == .example(1))
    #expect(node.entries.map(\.prefixLength) == [0, 1000, 70_000])
    #expect(node.entries.map(\.suffix) == [0..<3, 3..<303, 303..<303])
    #expect(node.entries.map(\.right) == [nil, .example(2), nil])
    #expect(node.suffixes == [1, 2, 3] + [UInt8](repeating: 9, count: 300))
  }

  @Test(arguments: [
    .map([:]), .array([]), .null, .map(["e": .array([])]), .map(["l": .null]),
    .map(["e": .array([]), "l": .null, "x": .null]), .map(["e": .map([:]), "l": .null]),
    .map(["e": .array([]), "l": .string("")]), .map(["e": .null, "l": .null]),
    node([.null]), node([.map([:])]), node([entry(["t": nil])]), node([entry(["x": .null])]),
    node([entry(["k": .string("abc")])]), node([entry(["k": .null])]),
    node([entry(["p": .integer(-1)])]), node([entry(["p": .integer(1 << 32)])]),
    node([entry(["p": .string("0")])]), node([entry(["v": .null])]),
    node([entry(["v": .bytes([1])])]), node([entry(["t": .bytes([1])])]),
    node([entry(["v": .link(.example(codec: .dagPB))])]),
    node([], left: .link(.example(codec: .dagPB))),
    node([
      entry([
        "v": .link(
          CID(codec: .dagCBOR, multihash: Multihash(function: .identity, digest: [1, 2])))
      ])
    ]),
  ])
  func `is nothing that has another form`(_ value: IPLDValue) throws {
    let bytes = try DAGCBOREncoder.encode(value)
    #expect(throws: MSTNode.Malformed.self) { try read(bytes) }
  }

  @Test func `is not a node when it is cut short anywhere, or goes on`() throws {
    let bytes = try DAGCBOREncoder.encode(
      Self.node([Self.entry(), Self.entry(["p": .integer(300)])], left: Self.link))
    #expect(try read(bytes).entries.count == 2)
    for length in 0..<bytes.count {
      #expect(throws: MSTNode.Malformed.self) { try read(Array(bytes[..<length])) }
    }
    #expect(
      throws: MSTNode.Malformed(reason: .trailingBytes, offset: bytes.count)
    ) { try read(bytes + [0]) }
  }

  @Test func `has one encoding: heads are as short as they can be`() throws {
    let bytes = try DAGCBOREncoder.encode(Self.node([Self.entry()]))
    // The array's head, the key's head, the prefix's head, each one byte longer than needed.
    for (offset, major) in [(3, UInt8(0x98)), (7, 0x58), (13, 0x18)] {
      var longer = bytes
      longer.insert(bytes[offset] & 0x1f, at: offset + 1)
      longer[offset] = major
      #expect(throws: MSTNode.Malformed(reason: .notMinimal, offset: offset)) { try read(longer) }
    }
  }

  @Test func `has no indefinite lengths, and no counts beyond its bytes`() {
    let start: [UInt8] = [0xa2, 0x61, 0x65]
    #expect(throws: MSTNode.Malformed(reason: nil, offset: 3)) {
      try read(start + [0x9f, 0xff, 0x61, 0x6c, 0xf6])
    }
    #expect(throws: MSTNode.Malformed.self) { try read(start + [0x9a, 0xff, 0xff, 0xff, 0xff]) }
    #expect(throws: MSTNode.Malformed.self) {
      try read(start + [0x9b] + [UInt8](repeating: 0xff, count: 8))
    }
  }
}
