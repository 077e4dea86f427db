import ATProtocol
import HTTP
import IPLD
import Synchronization
import TestSupport
import Testing
import XRPC

@testable import Files
@testable import Live
@testable import Snapshots

@Suite(.timeLimit(.minutes(15))) struct `A server's list of blobs` {
  private static let page = BlobListing.pageLength

  /// CIDs of blobs that are not needed.
  private static func cids(_ range: Range<Int>) -> [String] {
    range.map { "\(CID.blob(Array("\($0)".utf8)))" }
  }

  private static func answer(_ cids: [String], _ cursor: String? = nil) -> ScriptedServer.Answer {
    let list = cids.map { "\"\($0)\"" }.joined(separator: ",")
    return .json(#"{"cids":[\#(list)]\#(cursor.map { ",\"cursor\":\($0)" } ?? "")}"#)
  }

  private func list(_ server: ScriptedServer) async throws -> BlobListing {
    try await BlobListing.gather(
      of: DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz"),
      from: XRPCClient(service: "https://pds.test", network: server.network()), referenced: nil,
      progress: { _ in })
  }

  /// A server of this many blobs that gives out its pages in some way.
  private func server(
    _ count: Int,
    _ answer: @escaping @Sendable (_ all: [String], _ from: Int) -> ScriptedServer.Answer
  ) -> ScriptedServer {
    let all = Self.cids(0..<count)
    return ScriptedServer { question in
      let start = question["cursor"].flatMap { cursor in
        Int(cursor) ?? all.firstIndex(of: cursor).map { $0 + 1 }
      }
      return answer(all, start ?? 0)
    }
  }

  @Test(arguments: [0, 1, 999, 1000, 1001, 2000, 2500])
  func `ends with an empty page, or with one without a cursor`(count: Int) async throws {
    let withEmptyEnd = server(count) { all, start in
      let page = Array(all[start..<min(start + Self.page, all.count)])
      return Self.answer(page, page.last.map { "\"\($0)\"" })
    }
    let withoutCursor = server(count) { all, start in
      let end = min(start + Self.page, all.count)
      return Self.answer(Array(all[start..<end]), end < all.count ? "\"\(end)\"" : nil)
    }
    let withIntegers = server(count) { all, start in
      let end = min(start + Self.page, all.count)
      return Self.answer(Array(all[start..<end]), end < all.count ? "\(end)" : "null")
    }
    for server in [withEmptyEnd, withoutCursor, withIntegers] {
      let listing = try await list(server)
      #expect(listing.list.map { "\($0)" } == Self.cids(0..<count))
      #expect(listing.fault == nil)
    }
    #expect(
      withoutCursor.questions.count == max(1, (count + 999) / 1000)
        + (count % 1000 == 0 && count > 0 ? 1 : 0))
  }

  @Test(arguments: [1000, 2000, 2500])
  func `is asked for what comes after a full page without a cursor`(count: Int) async throws {
    let listing = try await list(
      server(count) { all, start in
        Self.answer(Array(all[start..<min(start + Self.page, all.count)]))
      })
    #expect(listing.list.count == count)
    #expect(listing.fault == nil)
  }

  /// What a snapshot notes of a list that broke off.
  private static let brokenOff = ListFault(reason: .tooLarge, status: nil, isTransient: false)

  @Test(
    arguments: [
      // Behind a full page the server cannot continue.
      (page, nil), (10, "\"again\""),
    ] as [(Int, String?)])
  func `is incomplete if it goes round`(length: Int, cursor: String?) async throws {
    let server = server(1500) { all, _ in Self.answer(Array(all[..<length]), cursor) }
    let listing = try await list(server)
    #expect(listing.list.count == length)
    #expect(listing.fault == Self.brokenOff)
    #expect((listing.failure as? BrokenList)?.reason == .repeatedCursor)
    #expect(server.questions.count == 2)
  }

  @Test func `is incomplete if it ends with its last blob again and again`() async throws {
    let server = server(25) { all, start in
      // It includes what the cursor names.
      let first = max(0, start - 1)
      let page = Array(all[first..<min(first + 10, all.count)])
      return Self.answer(page, page.last.map { "\"\($0)\"" })
    }
    let listing = try await list(server)
    #expect(listing.list.count == 25)
    #expect(listing.fault == Self.brokenOff)
  }

  @Test(arguments: [0..<1, 1..<2, 2..<5, 0..<5])
  func `goes on behind empty pages`(empty: Range<Int>) async throws {
    let server = ScriptedServer { question in
      let number = question["cursor"].flatMap { Int($0) } ?? 0
      let cids = empty.contains(number) ? [] : Self.cids(number * 3..<number * 3 + 3)
      return Self.answer(cids, number < 5 ? "\(number + 1)" : nil)
    }
    let listing = try await list(server)
    #expect(listing.list.count == (6 - empty.count) * 3)
    #expect(listing.fault == nil)
  }

  @Test func `has each blob once, and says how many entries are none`() async throws {
    let server = ScriptedServer { question in
      question["cursor"] == nil
        ? Self.answer(Self.cids(0..<5) + Self.cids(2..<7) + ["not a CID", ""], "\"x\"")
        : Self.answer(Self.cids(0..<8))
    }
    let listing = try await list(server)
    #expect(listing.list.map { "\($0)" } == Self.cids(0..<8))
    #expect(listing.malformedCount == 2)
  }

  @Test(
    arguments: [
      (501, "MethodNotImplemented", BlobLedger.Reason.serverError, false),
      (500, "InternalServerError", .serverError, true), (404, "NotFound", .notFound, false),
      (403, "Forbidden", .refused, false),
    ] as [(Int, String, BlobLedger.Reason, Bool)])
  func `that does not come at all says why`(
    status: Int, name: String, reason: BlobLedger.Reason, isTransient: Bool
  ) async throws {
    let listing = try await list(ScriptedServer { _ in .error(status, name) })
    #expect(listing.list.isEmpty)
    #expect(
      listing.fault
        == ListFault(reason: reason, status: status, isTransient: isTransient))
  }

  @Test func `keeps the pages that came before one that does not`() async throws {
    let server = ScriptedServer { question in
      switch question["cursor"] {
      case nil: Self.answer(Self.cids(0..<5), "\"a\"")
      case "a": .error(502, "BadGateway")
      default: Self.answer(Self.cids(5..<9))
      }
    }
    let listing = try await list(server)
    #expect(listing.list.map { "\($0)" } == Self.cids(0..<5))
    #expect(listing.fault?.isTransient == true)
  }

  @Test func `takes a page that is longer than asked for`() async throws {
    let listing = try await list(ScriptedServer { _ in Self.answer(Self.cids(0..<4001), "null") })
    #expect(listing.list.count == 4001)
  }

  // MARK: Accounts

  private func accounts(_ server: ScriptedServer) async throws -> (
    active: [String], other: [String], malformed: [String]
  ) {
    let (inactive, malformed) = (Inactive(), Inactive())
    var active: [String] = []
    let client = XRPCClient(service: "https://pds.test", network: server.network())
    let accounts = ServerAccounts(client) {
      inactive.add("\($0) \($1)")
    } malformed: {
      $0.forEach(malformed.add)
    }
    for try await account in accounts { active.append(account.account.text) }
    return (active, inactive.all, malformed.all)
  }

  private final class Inactive: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ name: String) { names.withLock { $0.append(name) } }
  }

  private static func repos(_ names: [String], _ more: String = "", cursor: String?)
    -> ScriptedServer.Answer
  {
    let list = names.map {
      #"{"did":"did:web:\#($0).test","head":"\#(CID.blob([1]))","rev":"3lscuqc52or2x"\#(more)}"#
    }
    return .json(
      #"{"repos":[\#(list.joined(separator: ","))]\#(cursor.map { ",\"cursor\":\"\($0)\"" } ?? "")}"#
    )
  }

  @Test func `of accounts names those it gives out, page by page`() async throws {
    let server = ScriptedServer { question in
      switch question["cursor"] {
      case nil: Self.repos(["a", "b"], cursor: "1")
      case "1": Self.repos(["c"], #","active":false,"status":"takendown""#, cursor: "2")
      case "2": Self.repos([], cursor: "3")
      case "3": Self.repos([], cursor: "4")
      case "4": Self.repos(["d"], cursor: "5")
      default: Self.repos([], cursor: nil)
      }
    }
    let found = try await accounts(server)
    #expect(found.active == ["a", "b", "d"].map { "did:web:\($0).test" })
    #expect(found.other == ["did:web:c.test takendown"])
  }

  @Test func `of accounts goes on behind a page of entries that are none`() async throws {
    let server = ScriptedServer { question in
      switch question["cursor"] {
      case nil:
        .json(##"{"repos":[{"did":"not a DID"},{"handle":"x"},{"did":7}],"cursor":"1"}"##)
      case "1": Self.repos(["b"], cursor: "2")
      default: Self.repos([], cursor: nil)
      }
    }
    let found = try await accounts(server)
    #expect(found.active == ["did:web:b.test"])
    #expect(found.malformed == ["not a DID", "", "7"])
  }

  @Test func `of accounts is given up when it goes on and on without any`() async throws {
    let server = ScriptedServer { question in
      let place = question["cursor"].flatMap { Int($0) } ?? 0
      return .json(##"{"repos":[{"did":"x"}],"cursor":"\##(place + 1)"}"##)
    }
    let error = await #expect(throws: BrokenList.self) { try await accounts(server) }
    #expect(error?.reason == .nothingNew)
    #expect(error?.nsid == "com.atproto.sync.listRepos")
    #expect(error?.service == "https://pds.test")
    #expect(server.questions.count == BrokenList.maximumIdlePages + 1)
  }

  @Test func `of accounts is refused where a page is far too long`() async throws {
    let entries = Array(repeating: "{}", count: 2001).joined(separator: ",")
    let server = ScriptedServer { _ in .json(#"{"repos":[\#(entries)]}"#) }
    let error = await #expect(throws: XRPCError.self) { try await accounts(server) }
    #expect(error?.fault != nil)
    #expect(server.questions.count == 1)
  }

  @Test func `of accounts ends also with an empty cursor`() async throws {
    let server = ScriptedServer { question in
      question["cursor"] == nil
        ? Self.repos(["a"], cursor: "1") : Self.repos(["b"], cursor: "")
    }
    #expect(try await accounts(server).active == ["did:web:a.test", "did:web:b.test"])
    #expect(server.questions.count == 2)
  }

  @Test(arguments: [["1"], ["1", "2"], ["1", "2", "3"]])
  func `of accounts broke off where it goes round, and what came is used`(cursors: [String])
    async throws
  {
    let server = ScriptedServer { question in
      let place = question["cursor"].flatMap { cursors.firstIndex(of: $0) } ?? -1
      return Self.repos(["a\(place + 1)"], cursor: cursors[(place + 1) % cursors.count])
    }
    let client = XRPCClient(service: "https://pds.test", network: server.network())
    var accounts = ServerAccounts(client)
    var found: [String] = []
    let error = await #expect(throws: BrokenList.self) {
      while let account = try await accounts.next() { found.append(account.account.text) }
    }
    #expect(error?.reason == .repeatedCursor)
    #expect(found.count == cursors.count + 1)
  }
}
