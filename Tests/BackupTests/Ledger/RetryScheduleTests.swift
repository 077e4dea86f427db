import IPLD
import TestSupport
import Testing

@testable import Snapshots

@Suite struct `When missing blobs are asked for again` {
  private static let now = "2026-03-04T12:00:00Z"

  private func entry(_ reason: BlobLedger.Reason, last: String?) -> BlobLedger.Missing {
    var entry = BlobLedger.Missing(cid: .blob([1]), reason: reason, size: nil)
    (entry.firstTried, entry.lastTried) = (last, last)
    return entry
  }

  private func isDue(
    _ reason: BlobLedger.Reason, last: String?, triedAgain: String? = nil
  ) -> Bool {
    RetrySchedule.daily(now: Self.now, triedAgain: triedAgain).isDue(entry(reason, last: last))
  }

  @Test(arguments: [
    BlobLedger.Reason.notFound, .refused, .tooLarge, .hostileRedirect, .unverifiable,
    .notProvided, .lost, BlobLedger.Reason(rawValue: "of-a-later-version"),
  ])
  func `is once a day for what is lost for good`(_ reason: BlobLedger.Reason) {
    #expect(!isDue(reason, last: "2026-03-04T11:59:59Z"))
    #expect(!isDue(reason, last: "2026-03-03T12:00:01Z"))
    #expect(isDue(reason, last: "2026-03-03T12:00:00Z"))
    #expect(isDue(reason, last: "2025-03-03T12:00:00Z"))
    #expect(isDue(reason, last: nil), "it has not been asked for")
    #expect(isDue(reason, last: "2026-03-04T12:00:01Z"), "that time is yet to come")
    #expect(isDue(reason, last: "once upon a time"))
    #expect(RetrySchedule.always.isDue(entry(reason, last: Self.now)))
  }

  @Test(arguments: [BlobLedger.Reason.serverError, .rateLimited, .noAnswer, .notTried, .mismatch])
  func `is each time for what may pass`(_ reason: BlobLedger.Reason) {
    #expect(isDue(reason, last: "2026-03-04T11:59:59Z"))
    #expect(isDue(reason, last: nil))
  }

  @Test func `counts from what is remembered beside the ledger, if that is later`() {
    let ledger = "2026-03-01T12:00:00Z"
    #expect(isDue(.notFound, last: ledger))
    #expect(!isDue(.notFound, last: ledger, triedAgain: "2026-03-04T03:00:00Z"))
    #expect(isDue(.notFound, last: ledger, triedAgain: "2026-03-03T03:00:00Z"))
    #expect(!isDue(.notFound, last: "2026-03-04T03:00:00Z", triedAgain: ledger))
    #expect(isDue(.lost, last: nil, triedAgain: "2026-03-04T03:00:00Z"))
  }

  @Test(arguments: [BlobLedger.Reason.notFound, .serverError])
  func `knows when a blob was last asked for in vain`(_ reason: BlobLedger.Reason) {
    let again = "2026-03-04T03:00:00Z"
    let schedule = RetrySchedule.daily(now: Self.now, triedAgain: again)
    #expect(schedule.lastTried(entry(reason, last: "2026-03-01T12:00:00Z")) == again)
    #expect(schedule.lastTried(entry(reason, last: Self.now)) == Self.now)
    #expect(schedule.lastTried(entry(.notTried, last: nil)) == nil)
  }

  @Test func `is never for what is accepted as lost`() {
    var accepted = entry(.serverError, last: nil)
    accepted.accepted = BlobLedger.Acceptance(date: Self.now, reason: nil)
    #expect(!RetrySchedule.always.isDue(accepted))
    #expect(!RetrySchedule.daily(now: Self.now, triedAgain: nil).isDue(accepted))
  }
}
