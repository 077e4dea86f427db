import Synchronization
import Testing

@testable import HTTP
@testable import XRPC

@Suite struct `A list that comes in pages` {
  /// A page: its entries, and the cursor that it names.
  typealias ScriptedPage = (entries: [String], cursor: String?)

  /// What came of a list: its entries, why it broke off, and how many pages were requested.
  private struct Outcome {
    var entries: [String] = []
    var broken: BrokenList?
    var requests = 0
  }

  /// Reads a list whose pages are asked for one after the other.
  private static func read(
    limit: Int = 1000, _ page: @escaping @Sendable (_ number: Int) -> ScriptedPage
  ) async throws -> Outcome {
    let asked = Mutex<[String?]>([])
    var pages = Pages(of: "com.example.list", at: "https://pds.test", limit: limit) { cursor in
      let number = asked.withLock { asked in
        asked.append(cursor)
        return asked.count - 1
      }
      let (entries, next) = page(number)
      return (entries, PagePlace(entries, cursor: next))
    }
    var outcome = Outcome()
    do {
      while let entries = try await pages.next() { outcome.entries += entries }
      #expect(try await pages.next() == nil)
    } catch let error as BrokenList {
      outcome.broken = error
      // It says so as often as it is asked, and requests nothing more.
      await #expect(throws: error) { try await pages.next() }
    }
    outcome.requests = asked.withLock { $0.count }
    // Each page is requested at the cursor of the one before.
    let cursors = (0..<max(1, outcome.requests)).map { $0 == 0 ? nil : page($0 - 1).cursor }
    #expect(asked.withLock { $0 } == cursors)
    return outcome
  }

  private static func read(_ pages: [ScriptedPage]) async throws -> Outcome {
    try await read { pages[$0] }
  }

  @Test(
    arguments: [
      [([], nil)],
      [(["a"], nil)],
      [([], "1"), (["a"], nil)],
      [(["a"], "1"), ([], "2"), (["b"], nil)],
      [(["a"], "1"), ([], "2"), ([], "3"), ([], "4"), (["b"], "5"), ([], nil)],
      [(["a"], "1"), (["a"], "2"), (["b"], nil)],
    ] as [[ScriptedPage]])
  func `ends with the page that has no cursor`(_ pages: [ScriptedPage]) async throws {
    let outcome = try await Self.read(pages)
    #expect(outcome.entries == pages.flatMap(\.entries))
    #expect(outcome.broken == nil)
    #expect(outcome.requests == pages.count)
  }

  @Test(
    arguments: [
      [(["a"], "1"), (["b"], "1")],
      [(["a"], "1"), (["b"], "2"), (["c"], "1")],
      [(["a"], "1"), (["b"], "2"), ([], "3"), (["c"], "4"), (["d"], "2")],
    ] as [[ScriptedPage]])
  func `broke off where it returns to a cursor, an earlier one, too`(_ pages: [ScriptedPage])
    async throws
  {
    let outcome = try await Self.read(pages)
    #expect(outcome.entries == pages.flatMap(\.entries))
    #expect(outcome.broken?.reason == .repeatedCursor)
    #expect(outcome.broken?.count == outcome.entries.count)
    #expect(outcome.requests == pages.count)
  }

  @Test(arguments: [[], ["a", "b"]])
  func `broke off after a hundred pages that bring nothing new`(_ entries: [String]) async throws {
    let outcome = try await Self.read { number in
      // In whatever order.
      (number % 2 == 0 ? entries : entries.reversed(), "\(number)")
    }
    #expect(outcome.broken?.reason == .nothingNew)
    #expect(outcome.requests == (entries.isEmpty ? 100 : 101))
  }

  @Test func `goes on behind ninety-nine empty pages`() async throws {
    let outcome = try await Self.read { number in
      (number % 100 == 99 ? ["\(number)"] : [], number == 299 ? nil : "\(number)")
    }
    #expect(outcome.entries == ["99", "199", "299"])
    #expect(outcome.broken == nil)
  }

  @Test func `broke off at the limit, but not if it ends there`() async throws {
    for (isEnd, limit) in [(true, 4), (false, 4), (false, 3)] {
      let outcome = try await Self.read(limit: limit) { number in
        (["\(number)a", "\(number)b"], isEnd && number == 1 ? nil : "\(number)")
      }
      #expect(outcome.entries.count == 4)
      #expect(outcome.broken?.reason == (isEnd ? nil : .tooLong(limit)))
    }
  }

  @Test func `broke off at a cursor that is too long to be sent back`() async throws {
    for (length, isBroken) in [(4096, false), (4097, true)] {
      let outcome = try await Self.read { number in
        number == 0 ? (["a"], String(repeating: "c", count: length)) : (["b"], nil)
      }
      #expect(outcome.entries == (isBroken ? ["a"] : ["a", "b"]))
      #expect(outcome.broken?.reason == (isBroken ? .longCursor(length) : nil))
    }
  }

  @Test(
    arguments: [
      (1, .repeatedCursor, "1 entry: the server names a cursor for the second time"),
      (0, .nothingNew, "0 entries: 100 pages in a row brought nothing new"),
      (5, .tooLong(5), "5 entries: it does not end (limit 5 entries)"),
      (5, .longCursor(5000), "5 entries: the cursor for the next page has 5000 bytes (limit 4096)"),
    ] as [(Int, BrokenList.Reason, String)])
  func `says which list broke off, of which server, and where`(
    _ count: Int, _ reason: BrokenList.Reason, _ words: String
  ) {
    let error = BrokenList(("com.example.list", "https://pds.test"), after: count, reason)
    #expect("\(error)" == "com.example.list at https://pds.test: the list broke off after \(words)")
  }
}
