import IPLD
internal import Repository
import TestSupport
import Testing

@testable import ATProtocol

@Suite struct `Records that cannot be read` {
  private static let cid = CID.example(1, codec: .raw)
  private static let other = CID.example(2, codec: .raw)

  /// A blob reference as it is encoded in a record.
  private static func blob(_ cid: CID = cid) throws -> [UInt8] {
    try DAGCBOREncoder.encode(
      .map([
        "$type": .string("blob"), "ref": .link(cid), "mimeType": .string("image/png"),
        "size": .integer(7),
      ]))
  }

  private static func old(_ cid: CID = cid) throws -> [UInt8] {
    try DAGCBOREncoder.encode(
      .map(["cid": .string("\(cid)"), "mimeType": .string("image/png")]))
  }

  /// The link as the value of the key `ref`, which comes first in a reference.
  private static func link(_ cid: CID = cid) throws -> [UInt8] {
    [0xd8, 0x2a, 0x58, UInt8(cid.bytes.count + 1), 0] + cid.bytes
  }

  private func scan(_ record: [UInt8]) -> (refs: [BlobRef], oddities: RecordScanner.Oddities) {
    var scanner = RecordScanner()
    var refs: [BlobRef] = []
    let oddities = scanner.scan(record.span) { refs.append($0) }
    return (refs, oddities)
  }

  /// Bytes that break a rule of DAG-CBOR somewhere and can be walked to their end.
  private static func walkable() throws -> [(String, [UInt8])] {
    let blob = try blob()
    return [
      ("bytes behind it", [0xa1, 0x61, 0x61] + blob + [0x01]),
      ("it is in an item behind the first", [0xa0] + blob),
      ("an unknown tag", [0xa1, 0x61, 0x61, 0xc1] + blob),
      ("many tags", [0xa1, 0x61, 0x61] + [UInt8](repeating: 0xc1, count: 50_000) + blob),
      ("a float of 16 bits", [0xa2, 0x61, 0x61, 0xf9, 0x3c, 0x00, 0x61, 0x62] + blob),
      ("a float of 32 bits", [0xa2, 0x61, 0x61, 0xfa, 0, 0, 0, 0, 0x61, 0x62] + blob),
      ("NaN", [0x82, 0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0] + blob),
      ("a simple value", [0x82, 0xf8, 0xc8] + blob),
      ("undefined", [0x82, 0xf7] + blob),
      ("an array without a length", [0x9f] + blob + [0x01, 0xff]),
      ("a map without a length", [0xbf, 0x61, 0x61] + blob + [0xff]),
      ("nested ones without lengths", [0x9f, 0x9f, 0xbf, 0x61, 0x61] + blob + [0xff, 0xff, 0xff]),
      ("a length that is not minimal", [0xa1, 0x78, 0x01, 0x61] + blob),
      ("keys out of order", [0xa2, 0x61, 0x62, 0x01, 0x61, 0x61] + blob),
      ("a key that comes twice", [0xa2, 0x61, 0x61, 0x01, 0x61, 0x61] + blob),
      ("a key that is a number", [0xa1, 0x01] + blob),
      ("a key that is the reference", [0xa1] + blob + [0x01]),
      ("a text that is not UTF-8", [0x82, 0x61, 0xff] + blob),
      ("bytes in pieces", [0x82, 0x5f, 0x41, 0x01, 0x41, 0x02, 0xff] + blob),
      (
        "a link that is none", [0x82, 0xd8, 0x2a, 0x01] + blob
      ),
      ("too deep", [UInt8](repeating: 0x81, count: 300) + blob),
      (
        "very deep",
        [UInt8](repeating: 0x81, count: TolerantBlobScanner.maximumDepth - 1) + blob
      ),
    ]
  }

  @Test func `are searched for blobs as far as their bytes can be walked`() throws {
    for (what, record) in try Self.walkable() {
      let (refs, oddities) = scan(record)
      #expect(refs.map(\.cid) == [Self.cid], "\(what)")
      #expect(refs.first?.mimeType == "image/png" && refs.first?.size == 7, "\(what)")
      #expect(oddities.isUnreadable && !oddities.mayHideBlobs, "\(what)")
      #expect(oddities.count == 1, "\(what)")
    }
  }

  @Test func `have references of every form`() throws {
    let form = try Self.old() + [0x01]
    #expect(scan(form).refs.map(\.isLegacy) == [true])
    // Neither a length nor an order.
    let open: [UInt8] =
      [0xbf, 0x68] + Array("mimeType".utf8) + [0x61, 0x78, 0x65] + Array("$type".utf8)
      + [0x64] + Array("blob".utf8) + [0x63] + Array("ref".utf8) + (try Self.link()) + [0xff]
    #expect(scan(open).refs.map(\.cid) == [Self.cid])
    #expect(scan(open).refs.map(\.mimeType) == ["x"])
    // Readers differ in which of two links they take.
    let two: [UInt8] =
      [0xa3, 0x63] + Array("ref".utf8) + (try Self.link()) + [0x63] + Array("ref".utf8)
      + (try Self.link(Self.other)) + [0x65] + Array("$type".utf8) + [0x64] + Array("blob".utf8)
    #expect(Set(scan(two).refs.map(\.cid)) == [Self.cid, Self.other])
  }

  @Test func `refer to no blob with what only looks like a reference`() throws {
    let link = try Self.link()
    let ref = [0x63] + Array("ref".utf8)
    let type = [0x65] + Array("$type".utf8)
    let blob = [0x64] + Array("blob".utf8)
    let trailing: [UInt8] = [0x01]
    // Of no type, of another type, with a byte string in the link's place, and with the two apart.
    #expect(scan([0xa1] + ref + link + trailing).refs.isEmpty)
    #expect(scan([0xa2] + ref + link + type + [0x64] + Array("blab".utf8) + trailing).refs.isEmpty)
    #expect(scan([0xa2] + ref + link.dropFirst(2) + type + blob + trailing).refs.isEmpty)
    #expect(scan([0x82, 0xa1] + ref + link + [0xa1] + type + blob + trailing).refs.isEmpty)
    #expect(scan(link + trailing).refs.isEmpty)
  }

  /// Bytes that cannot be walked to their end.
  private static func broken() throws -> [(String, [UInt8], found: Int)] {
    let blob = try blob()
    return [
      ("cut off behind a reference", [0x82] + blob, 1),
      ("cut off in a text", [0x82] + blob + [0x65, 0x61], 1),
      ("cut off before it", [0x82, 0x78, 0xff] + blob, 0),
      ("cut off in the reference, behind its type", [0xa1, 0x61, 0x61] + blob.dropLast(10), 1),
      ("a reserved head", [0x83] + blob + [0x1c] + blob, 1),
      ("a break out of place", [0x83] + blob + [0xff] + blob, 1),
      ("a break for a value", [0xbf, 0x61, 0x61] + blob + [0x61, 0x62, 0xff], 1),
      ("a break behind a tag", [0x9f] + blob + [0xc1, 0xff], 1),
      ("a map of more entries than there can be", [0xbb] + [UInt8](repeating: 0xff, count: 8), 0),
      ("a text of more bytes", [0x82] + blob + [0x7b] + [UInt8](repeating: 0xff, count: 8), 1),
      ("a text in pieces, of which any may be a type", [0x82, 0x7f, 0x61, 0x61, 0xff] + blob, 1),
      (
        "deeper than is walked",
        [UInt8](repeating: 0x81, count: TolerantBlobScanner.maximumDepth) + blob, 0
      ),
      ("nothing", [], 0),
    ]
  }

  @Test func `may hide blobs where their bytes cannot be walked to the end, and say so`() throws {
    for (what, record, count) in try Self.broken() where !record.isEmpty {
      let (refs, oddities) = scan(record)
      #expect(refs.count == count, "\(what)")
      #expect(oddities.isUnreadable && oddities.mayHideBlobs, "\(what)")
      #expect(oddities.first.first?.contains("may refer to blobs") == true, "\(what)")
    }
  }

  @Test func `are not called invalid if they are only too deep`() throws {
    let depth = DAGCBORScanner.maximumDepth
    let whole: [UInt8] = [0xa1, 0x61, 0x61] + [UInt8](repeating: 0x81, count: depth - 1) + [0x01]
    #expect(scan(whole).oddities.count == 0)
    let deeper: [UInt8] = [0xa1, 0x61, 0x61] + [UInt8](repeating: 0x81, count: depth) + [0x01]
    let why = try #require(scan(deeper).oddities.first.first)
    #expect(why.hasPrefix("nested deeper than 256 levels") && !why.contains("not valid"))
    #expect(!scan(deeper).oddities.mayHideBlobs)
  }

  @Test(arguments: 0..<8 as Range<UInt64>)
  func `never stop the program, whatever their bytes are`(seed: UInt64) throws {
    var generator = SeededGenerator(printing: seed)
    let blob = try Self.blob()
    for _ in 0..<3000 {
      var record = [UInt8(0x82)] + blob + [0x9f] + blob + [0xff]
      for _ in 0..<Int.random(in: 1...6, using: &generator) where record.count > 1 {
        let place = Int.random(in: 0..<record.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: record.remove(at: place)
        case 1: record.insert(.random(in: 0...255, using: &generator), at: place)
        case 2: record.removeLast(min(record.count - 1, place))
        default: record[place] = .random(in: 0...255, using: &generator)
        }
      }
      let (refs, oddities) = scan(record)
      #expect(refs.count <= 4)
      #expect(oddities.isUnreadable || !oddities.mayHideBlobs)
    }
  }

  @Test func `are counted for each record, and their blobs are the repository's`() throws {
    var repository = try TestRepository(posts: 3)
    repository.add("a.b.c/long", bytes: [0xa1, 0x61, 0x61] + (try Self.blob()) + [0x01])
    repository.add("a.b.c/cut", bytes: [0x82] + (try Self.blob(Self.other)))
    let car = try repository.car()
    let found = try RepositoryInspection(car: car)
    #expect(found.unreadable == UnreadableRecords(count: 2, partlySearchedCount: 1))
    #expect(found.unreadable.mayHideBlobs && found.isComplete && found.isWellFormed)
    #expect(Set(found.blobs.entries.map(\.cid)) == [Self.cid, Self.other])
    #expect(
      found.unreadable.sentence
        == "2 records cannot be read, 1 of which may refer to blobs that are not known")
  }
}
