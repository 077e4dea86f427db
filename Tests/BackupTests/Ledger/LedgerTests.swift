import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `The blob ledger` {
  @Test func `counts each blob by how it is entered`() {
    var ledger = BlobLedger()
    ledger.hold(.blob([1]), 10, isReferenced: true)
    ledger.hold(.blob([2]), 20, isReferenced: false)
    let referenced = BlobLedger.Missing(cid: .blob([3]), reason: .notFound, size: nil)
    var listed = BlobLedger.Missing(cid: .blob([4]), reason: .refused, size: nil)
    listed.isReferenced = false
    listed.accepted = BlobLedger.Acceptance(date: "2026-01-01T00:00:00Z", reason: nil)
    ledger.miss(referenced)
    ledger.miss(listed)
    var counts = BlobLedger.Counts()
    (counts.referenced, counts.held, counts.heldBytes) = (2, 1, 10)
    (counts.extras, counts.extrasBytes) = (1, 20)
    (counts.listedMissing, counts.accepted) = (1, 1)
    #expect(ledger.counts == counts)
    #expect(counts.missing == 1 && counts.unaccepted == 1)
    #expect(ledger.extras == [.blob([2])])
    #expect(ledger.missing == [referenced, listed])
  }

  @Test func `accepts losses and takes that back`() {
    let entries = (1...3).map {
      BlobLedger.Missing(cid: .blob([$0]), reason: .notFound, size: nil)
    }
    let first = BlobLedger.Acceptance(date: "2026-01-01T00:00:00Z", reason: "gone")
    let second = BlobLedger.Acceptance(date: "2026-01-02T00:00:00Z", reason: nil)
    var ledger = BlobLedger(missing: entries)
    #expect(ledger.accept(first) { $0.cid == entries[1].cid }.map(\.cid) == [entries[1].cid])
    #expect(ledger.counts.missing == 3 && ledger.counts.unaccepted == 2)
    #expect(ledger.accept(second) { $0.cid != entries[2].cid }.map(\.cid) == [entries[0].cid])
    #expect(ledger.missing.map(\.accepted) == [second, first, nil])
    #expect(ledger.counts.accepted == 2)
    #expect(ledger.accept(nil) { _ in true }.count == 2)
    #expect(ledger.missing == BlobLedger.MissingList(entries) && ledger.counts.accepted == 0)
  }

  @Test func `counts again what was counted`() {
    var counts = BlobLedger.Counts()
    counts.hold(3, 30, isReferenced: true)
    counts.miss(2, accepted: 1, isReferenced: true)
    counts.hold(1, 10, isReferenced: false)
    counts.recount(isReferenced: true)
    #expect((counts.referenced, counts.held, counts.heldBytes) == (0, 0, 0))
    #expect((counts.extras, counts.extrasBytes, counts.accepted) == (1, 10, 1))
    counts.recount(isReferenced: false)
    #expect(counts.extras == 0 && counts.extrasBytes == 0)
    let later = BlobLedger(holding: counts, extras: [])
    #expect(later.counts.referenced == 0 && later.counts.accepted == 0)
  }
}

@Suite struct `Pages of the blob ledger` {
  private func cid(_ number: Int) -> CID { .blob(Array("blob \(number)".utf8)) }

  private func page(_ value: IPLDValue) throws -> Block {
    let bytes = try DAGCBOREncoder.encode(value)
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  @Test(arguments: [0, 1, BlobLedger.entriesPerPage, 2 * BlobLedger.entriesPerPage + 1])
  func `give back what was listed, in pages that are not too long`(count: Int) throws {
    let missing = (0..<count).map { number in
      var entry = BlobLedger.Missing(
        cid: cid(number), reason: number % 2 == 0 ? .notProvided : .mismatch,
        size: number % 3 == 0 ? nil : number)
      if number % 5 > 0 { entry.status = 400 + number % 5 }
      if number % 7 > 0 { entry.firstTried = "2026-01-0\(number % 7)T00:00:00Z" }
      if number % 11 > 0 { entry.lastTried = "2026-02-0\(number % 9)T00:00:00Z" }
      entry.isReferenced = number % 13 > 0
      return entry
    }
    let pages = try BlobLedger.pages(missing: missing)
    #expect(pages.count == (count + BlobLedger.entriesPerPage - 1) / BlobLedger.entriesPerPage)
    #expect(pages.allSatisfy { $0.bytes.count <= 1 << 20 })
    #expect(try pages.flatMap { try BlobLedger.missing(onPage: $0) } == missing)
    let extras = (0..<count).map(cid)
    #expect(
      try BlobLedger.pages(extras: extras).flatMap { try BlobLedger.extras(onPage: $0) } == extras)
  }

  @Test func `keep a reason that nobody knows yet, and pass over further fields`() throws {
    let entry: IPLDValue = .map([
      "cid": .link(cid(1)), "reason": .string("TakenDown"), "status": .integer(400),
      "firstTried": .string("2026-01-01T00:00:00Z"), "server": .string("?"),
    ])
    let read = try BlobLedger.missing(onPage: page(.array([entry])))
    var expected = BlobLedger.Missing(cid: cid(1), reason: .init(rawValue: "TakenDown"), size: nil)
    (expected.status, expected.firstTried) = (400, "2026-01-01T00:00:00Z")
    #expect(read == [expected])
    #expect(read[0].reason.sentence == "TakenDown")
  }

  @Test func `are refused when they are not what they must be`() throws {
    let link = IPLDValue.link(cid(1))
    for value in [
      .null, .map([:]), .array([.null]), .array([.map([:])]), .array([.map(["cid": link])]),
      .array([.map(["cid": .string("x"), "reason": .string("y")])]), .array([link, .integer(1)]),
    ] as [IPLDValue] {
      let page = try page(value)
      #expect(throws: SnapshotError.malformedPage(page.cid)) {
        try BlobLedger.missing(onPage: page)
      }
      if value.array?.first?.link == nil || value.array?.count == 2 {
        #expect(throws: SnapshotError.malformedPage(page.cid)) {
          try BlobLedger.extras(onPage: page)
        }
      }
    }
    let garbage = Block(cid: cid(2), bytes: [0xff])
    #expect(throws: SnapshotError.malformedPage(garbage.cid)) {
      try BlobLedger.missing(onPage: garbage)
    }
  }
}
