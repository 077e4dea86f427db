import ATProtocol
import ArchiveTestSupport
import Foundation
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `A manifest` {
  private func map() throws -> IPLDMap {
    let bytes = try Snapshot.example().encode()
    return try DAGCBORDecoder.decode(bytes.span).map ?? [:]
  }

  private func snapshot(_ bytes: [UInt8]) throws -> Snapshot { try Snapshot(bytes.span) }

  private func decode(_ map: IPLDMap) throws -> Snapshot {
    let bytes = try DAGCBOREncoder.encode(.map(map))
    return try Snapshot(bytes.span)
  }

  @Test func `comes back as it was written, byte for byte`() throws {
    var snapshot = try Snapshot.example()
    let bytes = try snapshot.encode()
    #expect(try self.snapshot(bytes) == snapshot)
    (snapshot.car.runs, snapshot.car.pages) = (nil, [snapshot.commit, snapshot.commit])
    (snapshot.handle, snapshot.pds, snapshot.rev) = (nil, nil, nil)
    (snapshot.previous, snapshot.didDocument, snapshot.plcLog) = (nil, nil, nil)
    (snapshot.extrasPages, snapshot.missingPages, snapshot.isComplete) = ([], [], false)
    (snapshot.blobs.listed, snapshot.blobs.new, snapshot.blobs.newBytes) = (nil, nil, nil)
    (snapshot.blobs.listedMissing, snapshot.fetched) = (0, nil)
    snapshot.unreadable = UnreadableRecords()
    let again = try snapshot.encode()
    #expect(try self.snapshot(again) == snapshot)
    #expect(try self.snapshot(again).encode() == again)
  }

  @Test func `keeps its place when fields are there that nobody knows`() throws {
    var map = try map()
    map["zzz"] = .array([.null])
    map["blobs"]?.add("lost", .integer(9))
    map["car"]?.add("new", .string("?"))
    map["identity"]?.add("seal", .bytes([1]))
    #expect(try decode(map) == Snapshot.example())
  }

  @Test(arguments: [
    "did", "commit", "createdAt", "tool", "car", "counts", "blobs", "complete", "carpack",
    "car.header", "car.bytes", "car.blocks", "car.order", "car.order.kind",
    "car.order.runs", "counts.records", "counts.nodes", "counts.blocks", "blobs.referenced",
    "blobs.held", "blobs.heldBytes", "blobs.extras", "blobs.extrasBytes",
  ])
  func `is refused without a field that it has to have`(path: String) throws {
    let parts = path.split(separator: ".").map(String.init)
    let value = IPLDValue.map(try map()).replacing(parts[...], with: nil)
    #expect(throws: SnapshotError.self) { try decode(value.map ?? [:]) }
  }

  @Test(arguments: [
    "did", "handle", "rev", "commit", "createdAt", "tool", "car", "counts", "blobs", "complete",
    "carpack", "extras", "missing", "car.header", "car.bytes", "car.sha256", "car.blocks",
    "counts.recordBlocks", "car.order", "car.order.kind", "car.order.runs", "counts.records",
    "counts.nodes",
    "counts.blocks", "blobs.referenced", "blobs.held", "blobs.heldBytes", "blobs.extras",
    "blobs.extrasBytes", "pds", "prev", "identity", "identity.didDocument", "identity.plcLog",
    "host", "host.os", "host.durationMs", "blobs.listed", "blobs.listedMissing", "blobs.new",
    "blobs.newBytes", "fetched", "fetched.since", "fetched.repoRev",
    "fetched.leftOut", "fetched.leftOut.blocks", "fetched.leftOut.bytes",
    "unreadable", "unreadable.records", "unreadable.partlySearched",
  ])
  func `is refused with a field of another type`(path: String) throws {
    let parts = path.split(separator: ".").map(String.init)
    let value = IPLDValue.map(try map()).replacing(parts[...], with: .array([.boolean(true)]))
    #expect(throws: SnapshotError.self) { try decode(value.map ?? [:]) }
  }

  @Test(
    arguments: [
      ("did", .string("did:nobody")), ("did", .string("../../x")), ("handle", .string("no handle")),
      ("handle", .string("../x")), ("rev", .string("zzz")), ("rev", .string("../../../../x")),
      ("car.sha256", .bytes([1])), ("counts.recordBlocks", .integer(-1)),
      ("car.bytes", .integer(-1)), ("car.blocks", .integer(-1)),
      ("car.bytes", .integer(Int128(UInt64.max))), ("counts.records", .integer(-5)),
      ("counts.nodes", .integer(Int128(Int64.max) + 1)), ("blobs.held", .integer(-1)),
      ("blobs.held", .integer(8)), ("blobs.referenced", .integer(Int128(UInt64.max))),
      ("blobs.heldBytes", .integer(-1)), ("extras", .array([.integer(1)])),
      ("missing", .array([.null])), ("carpack", .integer(0)), ("carpack", .integer(2)),
      ("carpack", .integer(Int128(UInt64.max))), ("blobs.listed", .integer(-1)),
      ("blobs.listedMissing", .integer(-1)), ("blobs.new", .integer(-1)),
      ("unreadable.records", .integer(-1)), ("fetched.leftOut.bytes", .integer(-1)),
      ("blobs.newBytes", .integer(Int128(UInt64.max))), ("fetched.since", .string("yesterday")),
    ] as [(String, IPLDValue)])
  func `is refused with a value that cannot be`(path: String, value: IPLDValue) throws {
    let parts = path.split(separator: ".").map(String.init)
    let changed = IPLDValue.map(try map()).replacing(parts[...], with: value)
    #expect(throws: SnapshotError.self) { try decode(changed.map ?? [:]) }
  }

  @Test(arguments: [
    "car.bytes", "car.blocks", "counts.records", "counts.nodes", "counts.blocks",
    "counts.recordBlocks", "blobs.referenced", "blobs.heldBytes", "blobs.extras",
    "blobs.extrasBytes", "blobs.listed", "blobs.listedMissing", "blobs.accepted", "blobs.new",
    "blobs.newBytes", "fetched.leftOut.blocks", "fetched.leftOut.bytes", "unreadable.records",
    "unreadable.partlySearched", "host.durationMs",
  ])
  func `is refused with a figure that no archive has`(path: String) throws {
    let parts = path.split(separator: ".").map(String.init)
    for figure in [1 << 48 + 1, Int.max] {
      let value = IPLDValue.map(try map())
        .replacing(parts[...], with: .integer(Int128(figure)))
      #expect(throws: SnapshotError.malformedField(parts[parts.count - 1])) {
        try decode(value.map ?? [:])
      }
    }
    let most = IPLDValue.map(try map()).replacing(parts[...], with: .integer(1 << 48))
    let snapshot = try decode(most.map ?? [:])
    #expect(snapshot.blobs.unaccepted <= 1 << 49)
  }

  @Test func `keeps figures that do not go together, when it is written again`() throws {
    let value = IPLDValue.map(try map()).replacing(["unreadable", "records"], with: .integer(0))
      .replacing(["unreadable", "partlySearched"], with: .integer(8))
    let snapshot = try decode(value.map ?? [:])
    #expect(snapshot.unreadable.mayHideBlobs)
    #expect(try self.snapshot(snapshot.encode()) == snapshot)
  }

  @Test func `keeps what a later version says, at every depth, through a change`() throws {
    var value = IPLDValue.map(try map())
    for path in [["zzz"], ["blobs", "later"], ["car", "later"], ["fetched", "later"]] {
      value = value.replacing(path[...], with: .integer(9))
    }
    let words = [IPLDValue.string("fork"), .string("eclipse")]
    value = value.replacing(["doubts"], with: .array(words))
    var snapshot = try decode(value.map ?? [:])
    #expect(snapshot.standing.doubts == [.fork])
    let encoded = try snapshot.encode()
    let again = try DAGCBORDecoder.decode(encoded.span)
    #expect(again == value)
    snapshot.blobs.listedMissing = 0
    snapshot.fetched?.leftOut = nil
    let encodedAgain = try snapshot.encode()
    let changed = try DAGCBORDecoder.decode(encodedAgain.span)
    #expect(changed["zzz"] == .integer(9))
    for name in ["blobs", "fetched"] { #expect(changed[name]?["later"] == .integer(9)) }
    #expect(changed["blobs"]?["listedMissing"] == nil)
    #expect(changed["fetched"]?["leftOut"] == nil)
  }

  @Test func `has no field that the document does not name`() throws {
    let document = try String(
      contentsOfFile: "\(Command.packageRoot)/Docs/FORMAT.md", encoding: .utf8)
    let map = try map()
    var names = map.keys
    for entry in map.entries { names += entry.value.map?.keys ?? [] }
    for name in names { #expect(document.contains("`\(name)`"), "\(name)") }
  }

  @Test func `says by name which version and which order it does not know`() throws {
    let value = IPLDValue.map(try map())
    #expect(throws: SnapshotError.unknownVersion(2)) {
      try decode(value.replacing(["carpack"], with: .integer(2)).map ?? [:])
    }
    #expect(throws: SnapshotError.unknownOrder("sorted")) {
      try decode(value.replacing(["car", "order", "kind"], with: .string("sorted")).map ?? [:])
    }
    let hostile = SnapshotError.unknownOrder(
      "\u{1}\u{202e}" + String(repeating: "x", count: 1 << 20))
    #expect("\(hostile)".unicodeScalars.allSatisfy { !$0.isTerminalControl })
    #expect("\(hostile)".utf8.count < 300)
  }

  @Test func `that lists a page twice is refused, for it could be of any length`() throws {
    let link = IPLDValue.link(try Snapshot.example().commit)
    for name in ["extras", "missing"] {
      var map = try map()
      map[name] = .array([link, link])
      #expect(throws: SnapshotError.self) { try decode(map) }
    }
  }

  @Test func `is refused when it is no DAG-CBOR, and nothing traps`() throws {
    #expect(throws: SnapshotError.self) { try snapshot([]) }
    #expect(throws: SnapshotError.notAManifest) { try snapshot([0xa0]) }
    let bytes = try Snapshot.example().encode()
    for index in bytes.indices {
      var damaged = bytes
      damaged[index] ^= 0xff
      _ = try? snapshot(damaged)
      #expect(throws: SnapshotError.self) { try snapshot(Array(bytes[..<index])) }
    }
  }
}

extension IPLDValue {
  /// The value with another one, or none, at a path of keys.
  func replacing(_ path: ArraySlice<String>, with value: IPLDValue?) -> IPLDValue {
    guard let key = path.first else { return value ?? .null }
    guard case .map(var map) = self else { return self }
    map[key] =
      path.count == 1 ? value : (map[key] ?? .null).replacing(path.dropFirst(), with: value)
    return .map(map)
  }

  /// Adds a key to a map.
  mutating func add(_ key: String, _ value: IPLDValue) { self = replacing([key], with: value) }
}
