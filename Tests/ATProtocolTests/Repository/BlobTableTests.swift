import IPLD
import TestSupport
import Testing

@testable import ATProtocol

@Suite struct `A table of blobs` {
  private func key(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func ref(
    _ number: Int, _ mimeType: String? = nil, size: Int? = nil, isLegacy: Bool = false
  ) -> BlobRef {
    BlobRef(cid: cid(number), mimeType: mimeType, size: size, isLegacy: isLegacy)
  }

  /// CIDs of every kind that a record may name.
  private func cid(_ number: Int) -> CID {
    let bytes = Array("blob \(number)".utf8)
    switch number % 5 {
    case 0: return CID(codec: .dagCBOR, hashing: bytes.span)
    case 1:
      let digest = SHA256.digest(of: bytes.span)
      return CID(codec: Codec(rawValue: 0x0129), multihash: Multihash(digest))
    case 2:
      return CID(
        codec: .raw,
        multihash: Multihash(function: HashFunction(rawValue: 0x1e), digest: bytes))
    default: return CID(codec: .raw, hashing: bytes.span)
    }
  }

  @Test func `has each blob once, in order, whatever its CID is like`() throws {
    var random = SeededGenerator(printing: 0x6b10_b7ab)
    var table = BlobTable()
    var order: [Int] = []
    var firstRecords: [Int: String] = [:]
    for step in 0..<6000 {
      let number = Int.random(in: 0..<3000, using: &random)
      let record = "app.test.c\(step / 700)/\(step / 3)"
      table.insert(ref(number), from: key(record))
      if firstRecords.updateValue(firstRecords[number] ?? record, forKey: number) == nil {
        order.append(number)
      }
    }
    #expect(table.entries.count == order.count)
    #expect(table.entries.map(\.cid) == order.map(cid))
    #expect(table.entries.map(\.firstRecord) == order.map { firstRecords[$0] })
    #expect(table.typedReferenceCount == 6000 && table.legacyReferenceCount == 0)
    for number in 0..<3500 {
      #expect(table.contains(cid(number)) == (firstRecords[number] != nil))
      #expect(table[cid(number)]?.firstRecord == firstRecords[number])
    }
  }

  @Test func `takes each fact from the first reference that has it`() throws {
    var table = BlobTable()
    table.insert(ref(1, isLegacy: true), from: key("a/1"))
    table.insert(ref(1, size: 0), from: key("a/2"))
    table.insert(ref(1, "image/png", size: 7), from: key("a/3"))
    table.insert(ref(1, "image/jpeg"), from: key("a/4"))
    table.insert(ref(2, "", size: .max), from: key("no collection"))
    table.insert(ref(3, "image/png", isLegacy: true), from: key(""))
    let entries = Array(table.entries)
    #expect(entries.map(\.mimeType) == ["image/png", "", "image/png"])
    #expect(entries.map(\.size) == [0, .max, nil])
    #expect(entries.map(\.isTyped) == [true, true, false])
    #expect(entries.map(\.isLegacy) == [true, false, true])
    #expect(entries.map(\.firstRecord) == ["a/1", "no collection", ""])
    #expect(table.mimeTypeCounts == ["image/png": 1, "": 1])
    #expect(table.typedReferenceCount == 4 && table.legacyReferenceCount == 2)
  }

  @Test func `keeps any number of media types apart`() throws {
    var table = BlobTable()
    for number in 0..<5000 {
      table.insert(ref(number, "image/x-\(number % 2500)"), from: key("a/\(number)"))
    }
    #expect(table.entries.map(\.mimeType) == (0..<5000).map { "image/x-\($0 % 2500)" })
    #expect(table.mimeTypeCounts.count == 2500)
    #expect(table.mimeTypeCounts.allSatisfy { $0.value == 2 })
  }

  @Test func `without blobs is empty`() throws {
    let table = BlobTable()
    #expect(table.entries.isEmpty && !table.contains(cid(1)) && table[cid(1)] == nil)
  }
}
