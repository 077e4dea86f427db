import IPLD
import TestSupport
import Testing

@testable import Snapshots

@Suite struct `Blobs in little memory` {
  /// CIDs in all forms there are.
  private static var forms: [CID] {
    get throws {
      [
        .blob([1]), CID(codec: .dagCBOR, hashing: [UInt8]([2]).span),
        CID(codec: Codec(rawValue: 0xff), hashing: [UInt8]([3]).span),
        CID(codec: Codec(rawValue: 0x1234), hashing: [UInt8]([3]).span),
        try CID("QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"),
        // Another hash function: the identity.
        try CID("bafkqaaik"), .blob([1, 2]),
      ]
    }
  }

  @Test func `are the CIDs they were, in every form`() throws {
    let cids = try Self.forms
    #expect(Array(CIDList(cids)) == cids)
    var indexed = IndexedCIDs()
    for cid in cids + cids.reversed() { indexed.insert(cid) }
    #expect(Array(indexed.list) == cids)
    for (place, cid) in cids.enumerated() { #expect(indexed.place(of: cid) == place) }
    #expect(indexed.place(of: .blob([9])) == nil)
  }

  @Test func `are found among thousands`() {
    let cids = (0..<5000).map { CID.blob(Array("\($0)".utf8)) }
    var indexed = IndexedCIDs(cids.prefix(4000))
    #expect(cids.prefix(4000).indices.allSatisfy { indexed.place(of: cids[$0]) == $0 })
    #expect(cids[4000...].allSatisfy { indexed.place(of: $0) == nil })
    #expect(!indexed.insert(cids[7]) && indexed.insert(cids[4000]))
    #expect(indexed.list.count == 4001)
  }

  @Test func `keep all that the ledger says`() throws {
    var entries: [BlobLedger.Missing] = []
    for (number, cid) in try Self.forms.enumerated() {
      var entry = BlobLedger.Missing(
        cid: cid, reason: number.isMultiple(of: 2) ? .notFound : .init(rawValue: ""),
        size: number == 1 ? nil : number)
      entry.status = number == 2 ? nil : 400 + number
      entry.firstTried = number == 3 ? nil : "2026-01-0\(number)"
      entry.lastTried = number == 4 ? nil : "2026-02-01"
      entry.isReferenced = number != 5
      if number == 6 { entry.accepted = BlobLedger.Acceptance(date: "2026-03-01", reason: "x") }
      entries.append(entry)
    }
    let list = BlobLedger.MissingList(entries)
    #expect(Array(list) == entries)
    #expect(BlobLedger(missing: list).counts.listedMissing == 1)
    #expect(
      try BlobLedger.pages(missing: list).map(\.cid)
        == BlobLedger.pages(missing: entries).map(\.cid))
    #expect(
      try BlobLedger.pages(missing: list).flatMap { try BlobLedger.missing(onPage: $0) } == entries)
  }

  @Test func `say nothing new if only the time of the last try differs`() {
    var entry = BlobLedger.Missing(cid: .blob([1]), reason: .notFound, size: 1)
    (entry.firstTried, entry.lastTried) = ("2026-01-01", "2026-01-02")
    let list: BlobLedger.MissingList = [entry]
    entry.lastTried = "2026-01-03"
    #expect([entry].saysNothingNew(after: list))
    var other = entry
    other.reason = .refused
    #expect(![other].saysNothingNew(after: list))
    other = entry
    other.status = 404
    #expect(![other].saysNothingNew(after: list))
    #expect(![].saysNothingNew(after: list))
    #expect(![entry, entry].saysNothingNew(after: list))
  }

  @Test func `have pages of at most 1 MiB, whatever is said of them`() throws {
    let entries = (0..<5000).map { number in
      var entry = BlobLedger.Missing(
        cid: .blob(Array("\(number)".utf8)), reason: .notFound, size: number)
      entry.accepted = BlobLedger.Acceptance(
        date: "2026-03-01T00:00:00Z", reason: String(repeating: "x", count: 500))
      return entry
    }
    let pages = try BlobLedger.pages(missing: entries)
    #expect(pages.count > 2 && pages.allSatisfy { $0.bytes.count <= 1 << 20 })
    #expect(try pages.flatMap { try BlobLedger.missing(onPage: $0) } == entries)
  }
}

extension [BlobLedger.Missing] {
  fileprivate func saysNothingNew(after list: BlobLedger.MissingList) -> Bool {
    BlobLedger.MissingList(self).saysNothingNew(after: list)
  }
}
