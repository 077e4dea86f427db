import ATProtocol
import Archive
import ArchiveTestSupport
import IPLD
internal import Repository
import SystemPackage
import TestSupport
import Testing

@testable import Live
@testable import Snapshots

@Suite struct `What is wanted of blobs, and what is said of them` {
  private let folder: TemporaryFolder
  private static let moment = "2026-03-04T05:06:07Z"

  init() throws { folder = try TemporaryFolder() }

  /// A list of some blobs.
  private func listing(_ numbers: [Int]) -> BlobListing { BlobListing(CIDList(numbers.map(cid))) }

  private func blob(_ number: Int) -> [UInt8] { Array("blob \(number)".utf8) }
  private func cid(_ number: Int) -> CID { .blob(blob(number)) }

  /// A repository with a post for each of these blobs, the oldest first.
  private func repository(_ blobs: [Int]) throws -> TestRepository {
    var repository = TestRepository()
    for (place, number) in blobs.enumerated() {
      let rkey = TID(integer: UInt64(1_740_000_000_000_000 + place) << 10).text
      try repository.add("app.bsky.feed.post/\(rkey)", blob: cid(number), size: blob(number).count)
    }
    return repository
  }

  private func table(_ repository: TestRepository) throws -> BlobTable {
    let car = try repository.car()
    return try RepositoryInspection(car: car).blobs
  }

  /// An archive of a snapshot that holds some blobs, and whose ledger says something.
  private func base(
    _ repository: TestRepository, holding: [Int], extras: [Int] = [], lostExtras: [Int] = [],
    missing: [BlobLedger.Missing] = []
  ) throws -> ArchivedSnapshot {
    let pages = try (
      BlobLedger.pages(extras: (extras + lostExtras).map(cid)), BlobLedger.pages(missing: missing)
    )
    let blobs = (holding + extras).map { Block(cid: cid($0), bytes: blob($0)) }
    let path = try handMadeArchive(in: folder, repository, further: blobs + pages.0 + pages.1) {
      $0.extrasPages = pages.0.map(\.cid)
      $0.missingPages = pages.1.map(\.cid)
    }
    return try ArchivedSnapshot.newest(in: ArchiveReader(path: path))
  }

  private func missing(
    _ number: Int, _ reason: BlobLedger.Reason, isReferenced: Bool = true,
    since first: String? = nil,
    last: String? = nil, status: Int? = nil
  ) -> BlobLedger.Missing {
    var entry = BlobLedger.Missing(
      cid: cid(number), reason: reason, size: isReferenced ? blob(number).count : nil)
    (entry.firstTried, entry.lastTried, entry.status) = (first, last, status)
    entry.isReferenced = isReferenced
    return entry
  }

  @Test
  func `asks for the newest first, for profiles before them, and for what nobody refers to last`()
    throws
  {
    var repository = try repository([1, 2, 3])
    try repository.add("app.bsky.actor.profile/self", blob: cid(4))
    let reconciliation = try BlobReconciliation(
      table(repository), inCAR: { _ in nil },
      listing: listing([9, 2, 8, 9]),
      archive: nil, base: nil)
    #expect(reconciliation.outstanding.map(\.cid) == [4, 3, 2, 1, 9, 8].map(cid))
    #expect(
      reconciliation.outstanding.map(\.isReferenced) == [true, true, true, true, false, false])
    #expect(reconciliation.outstanding.map(\.declaredSize) == [100, 6, 6, 6, nil, nil])
  }

  @Test func `asks for nothing that is there`() throws {
    let repository = try repository([1, 2, 3])
    let base = try base(repository, holding: [1], extras: [7])
    let reconciliation = try BlobReconciliation(
      table(repository), inCAR: { $0 == cid(2) ? 6 : nil }, listing: listing([7, 8]),
      archive: base.reader,
      base: base)
    #expect(reconciliation.outstanding.map(\.cid) == [3, 8].map(cid))
    let ledger = reconciliation.ledger([:], at: Self.moment)
    #expect(ledger.extras == [cid(7)])
    #expect(ledger.counts.held == 2 && ledger.counts.heldBytes == 12)
    #expect(ledger.counts.extras == 1 && ledger.counts.extrasBytes == 6)
  }

  @Test func `adds up`() throws {
    let repository = try repository([1, 2, 3, 4])
    let base = try base(repository, holding: [1], extras: [7])
    var reconciliation = try BlobReconciliation(
      table(repository), inCAR: { _ in nil }, listing: listing([1, 2, 3, 8, 9]),
      archive: base.reader,
      base: base)
    reconciliation.receive(cid(2), length: 6)
    reconciliation.receive(cid(8), length: 6)
    #expect(Set(reconciliation.outstanding.map(\.cid)) == Set([3, 4, 9].map(cid)))
    let failures = [
      cid(3): BlobFailure(reason: .notFound, status: 400),
      cid(9): BlobFailure(reason: .noAnswer, status: nil),
    ]
    let ledger = reconciliation.ledger(failures, at: Self.moment)
    var counts = Snapshot.BlobCounts()
    (counts.referenced, counts.held, counts.heldBytes) = (4, 2, 12)
    (counts.extras, counts.extrasBytes) = (2, 12)
    (counts.listed, counts.listedMissing, counts.new, counts.newBytes) = (5, 1, 2, 12)
    #expect(ledger.counts == counts)
    #expect(counts.missing == 2 && !counts.isComplete)
    #expect(ledger.extras == [7, 8].map(cid))
    #expect(
      ledger.missing == [
        missing(3, .notFound, since: Self.moment, last: Self.moment, status: 400),
        missing(4, .notTried),
        missing(9, .noAnswer, isReferenced: false, since: Self.moment, last: Self.moment),
      ])
  }

  @Test func `says since when something is missing, and when it was tried last`() throws {
    let repository = try repository([1, 2, 3, 4])
    let (first, last) = ("2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z")
    let base = try base(
      repository, holding: [],
      missing: [
        missing(1, .notFound, since: first, last: last, status: 400), missing(2, .notProvided),
        missing(3, .serverError, since: first, last: last, status: 500),
        missing(8, .refused, isReferenced: false, since: first, last: last, status: 403),
        missing(9, .refused, isReferenced: false, since: first, last: last, status: 403),
      ])
    var reconciliation = try BlobReconciliation(
      table(repository), inCAR: { _ in nil }, listing: nil, archive: base.reader, base: base)
    #expect(
      Set(reconciliation.outstanding.map(\.cid)) == Set([1, 2, 3, 4, 8, 9].map(cid)),
      "the server said nothing")
    reconciliation.receive(cid(3), length: 6)
    let failures = Dictionary(
      uniqueKeysWithValues: [1, 2, 9].map { (cid($0), BlobFailure(reason: .noAnswer, status: nil)) }
    )
    let ledger = reconciliation.ledger(failures, at: Self.moment)
    #expect(ledger.counts.listed == nil)
    #expect(ledger.counts.listedMissing == 2)
    #expect(
      ledger.missing == [
        missing(1, .noAnswer, since: first, last: Self.moment),
        missing(2, .noAnswer, since: Self.moment, last: Self.moment),
        missing(4, .notTried),
        // It was not tried this time.
        missing(8, .refused, isReferenced: false, since: first, last: last, status: 403),
        missing(9, .noAnswer, isReferenced: false, since: first, last: Self.moment),
      ])
  }

  @Test func `forgets what no record refers to any more and no server lists`() throws {
    let before = try repository([1, 2])
    let base = try base(
      before, holding: [1], extras: [7],
      missing: [missing(2, .notFound), missing(9, .refused, isReferenced: false)])
    let reconciliation = try BlobReconciliation(
      table(repository([3])), inCAR: { _ in nil }, listing: listing([3]),
      archive: base.reader,
      base: base)
    #expect(reconciliation.outstanding.map(\.cid) == [cid(3)])
    let ledger = reconciliation.ledger(
      [cid(3): BlobFailure(reason: .refused, status: 403)], at: Self.moment)
    #expect(ledger.missing.map(\.cid) == [cid(3)])
    #expect(ledger.extras == [cid(7)], "what is held is kept")
    #expect(ledger.counts.referenced == 1 && ledger.counts.held == 0)
  }

  @Test func `knows a blob that was listed once and is referred to now`() throws {
    let base = try base(
      TestRepository(), holding: [], extras: [7],
      missing: [missing(9, .refused, isReferenced: false, since: Self.moment, last: Self.moment)])
    let reconciliation = try BlobReconciliation(
      table(repository([7, 9])), inCAR: { _ in nil }, listing: listing([7, 9]),
      archive: base.reader,
      base: base)
    let ledger = reconciliation.ledger([:], at: Self.moment)
    #expect(ledger.extras.isEmpty)
    #expect(ledger.counts.held == 1 && ledger.counts.listedMissing == 0)
    #expect(ledger.missing == [missing(9, .refused, since: Self.moment, last: Self.moment)])
  }

  @Test func `says that an extra is lost of which nothing is left`() throws {
    let base = try base(TestRepository(), holding: [], extras: [7], lostExtras: [8])
    let reconciliation = try BlobReconciliation(
      table(repository([])), inCAR: { _ in nil }, listing: listing([]), archive: base.reader,
      base: base)
    #expect(reconciliation.outstanding.map(\.cid) == [cid(8)])
    let ledger = reconciliation.ledger([:], at: Self.moment)
    #expect(ledger.extras == [cid(7)])
    #expect(ledger.missing == [missing(8, .lost, isReferenced: false)])
    #expect(ledger.counts.listedMissing == 1)
  }

  // MARK: Blobs from files

  @Test func `says the same of blobs from files, for which nobody is asked`() throws {
    let base = try base(
      TestRepository(), holding: [5], extras: [7], lostExtras: [8],
      missing: [
        missing(1, .refused, isReferenced: false, since: Self.moment, last: Self.moment),
        missing(5, .notFound, isReferenced: false), missing(9, .notFound, isReferenced: false),
      ])
    var reconciliation = try BlobReconciliation(
      table(repository([1, 2, 3, 4])), inCAR: { _ in nil }, listing: nil, archive: base.reader,
      base: base, schedule: nil)
    #expect(reconciliation.wantedCount == 0)
    reconciliation.took(cid(2), length: 6)
    reconciliation.mismatched(cid(3))
    reconciliation.took(cid(6), length: 6)
    let ledger = reconciliation.ledger()
    #expect(ledger.extras == [7, 5, 6].map(cid))
    #expect(
      ledger.missing == [
        missing(1, .refused, since: Self.moment, last: Self.moment), missing(3, .mismatch),
        missing(4, .notProvided), missing(8, .lost, isReferenced: false),
        missing(9, .notFound, isReferenced: false),
      ])
    var counts = Snapshot.BlobCounts()
    (counts.referenced, counts.held, counts.heldBytes) = (4, 1, 6)
    (counts.extras, counts.extrasBytes, counts.listedMissing) = (3, 18, 2)
    #expect(ledger.counts == counts, "nobody was asked for a list, and nobody counted what is new")
  }

  @Test func `keeps what was accepted, whatever is given for it`() throws {
    var accepted = missing(1, .notFound, since: Self.moment, last: Self.moment)
    accepted.accepted = BlobLedger.Acceptance(date: Self.moment, reason: nil)
    let base = try base(repository([1]), holding: [], missing: [accepted])
    var reconciliation = try BlobReconciliation(
      table(repository([1])), inCAR: { _ in nil }, listing: nil, archive: base.reader, base: base,
      schedule: nil)
    reconciliation.mismatched(cid(1))
    #expect(reconciliation.ledger().missing == [accepted])
    #expect(reconciliation.ledger().counts.accepted == 1)
  }

  // MARK: What is missing now

  @Test func `lists what is missing now, and not what has come since`() throws {
    let repository = try repository([1, 2, 3])
    let first = "2025-01-01T00:00:00Z"
    let base = try base(
      repository, holding: [1, 5],
      missing: [
        missing(2, .notFound, since: first, last: first, status: 404), missing(1, .notFound),
        missing(5, .refused, isReferenced: false),
        missing(6, .refused, isReferenced: false, status: 403),
      ])
    let entries = try base.missingNow().blobs
    #expect(entries.map(\.blob.cid) == [2, 3, 6].map(cid))
    #expect(
      entries.map(\.blob) == [
        missing(2, .notFound, since: first, last: first, status: 404), missing(3, .notProvided),
        missing(6, .refused, isReferenced: false, status: 403),
      ])
    #expect(
      entries[0].record?.hasPrefix("app.bsky.feed.post/") == true
        && entries[0].mimeType == "image/png")
    #expect(entries[2].record == nil)
  }
}

extension BlobReconciliation {
  /// Notes that a blob that is wanted has arrived.
  fileprivate mutating func receive(_ cid: CID, length: UInt64) {
    guard let blob = outstanding.first(where: { $0.cid == cid }) else {
      Issue.record("\(cid) is not wanted")
      return
    }
    received(blob, length: length)
  }

  /// The ledger after some blobs did not come.
  fileprivate func ledger(_ failures: [CID: BlobFailure], at moment: String) -> BlobLedger {
    ledger(at: moment) { failures[cid(at: $0)] }
  }
}
