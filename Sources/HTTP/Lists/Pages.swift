package import IPLD

/// What a page says of the list that it belongs to.
package struct PagePlace: Sendable {
  /// How many entries the page has.
  let count: Int
  /// The same number for pages with the same entries, in whatever order.
  let fingerprint: Int
  /// Where the list continues; nil at its end.
  let cursor: String?

  /// The place of a page with these entries.
  package init(
    _ entries: some Collection<some Hashable>, malformed: [String] = [], cursor: String?
  ) {
    count = entries.count + malformed.count
    fingerprint = malformed.reduce(entries.reduce(0) { $0 &+ $1.hashValue }) {
      $0 &+ $1.hashValue
    }
    self.cursor = cursor
  }
}

/// The pages of a list that a server gives out one after the other.
///
/// 1. The list ends with a page without a cursor, and only there: a page without entries may stand
///    anywhere (<https://atproto.com/specs/xrpc>, cursors).
/// 2. A list that gives a cursor twice, brings nothing new for a hundred pages, or exceeds the
///    caller's limit broke off, which is an error after the last page that was of use.
/// 3. Sixteen bytes are kept of a page, so a list may be as long as a network has accounts.
package struct Pages<Page: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
  /// A page.
  package typealias Element = Page

  private let list: BrokenList.Name
  private let limit: Int
  private let fetch: @Sendable (String?) async throws -> (Page, PagePlace)

  private var cursor: String?
  /// The hashes of the cursors so far.
  private var cursors: Set<Int> = []
  /// The fingerprints of the pages so far.
  private var fingerprints: Set<Int> = []
  /// How many pages in a row have brought nothing new.
  private var idlePages = 0
  private var count = 0
  /// Whether the last page had an entry.
  package private(set) var hasEntries = false
  /// What the next call finds; nil while the list continues.
  private var end: Result<Page?, BrokenList>?

  /// The pages of a list.
  ///
  /// - Parameters:
  ///   - nsid: the method that lists.
  ///   - service: the server's base URL.
  ///   - limit: with how many entries the list is not read on.
  ///   - fetch: requests the page at a cursor, nil for the first.
  package init(
    of nsid: String, at service: String, limit: Int,
    fetch: @escaping @Sendable (String?) async throws -> (Page, PagePlace)
  ) {
    (list, self.limit, self.fetch) = ((nsid, service), limit, fetch)
  }

  /// The pages, from the first on.
  package func makeAsyncIterator() -> Pages { self }

  /// The next page; nil after the last.
  ///
  /// - Throws: ``BrokenList`` if the list broke off behind the page before; what `fetch` throws.
  package mutating func next() async throws -> Page? {
    if let end { return try end.get() }
    let (page, place) = try await fetch(cursor)
    count += place.count
    hasEntries = place.count > 0
    let isNew = hasEntries && fingerprints.insert(place.fingerprint).inserted
    idlePages = isNew ? 0 : idlePages + 1
    if let next = place.cursor {
      end = reasonToStop(before: next).map { .failure(BrokenList(list, after: count, $0)) }
      cursor = next
    } else {
      end = .success(nil)
    }
    return page
  }

  private mutating func reasonToStop(before cursor: String) -> BrokenList.Reason? {
    if cursor.utf8.count > BrokenList.maximumCursor { return .longCursor(cursor.utf8.count) }
    if !cursors.insert(cursor.hashValue).inserted { return .repeatedCursor }
    if idlePages >= BrokenList.maximumIdlePages { return .nothingNew }
    return count >= limit ? .tooLong(limit) : nil
  }
}

/// A list of a server that could not be read to its end, although the server answered.
package struct BrokenList: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// Which list: the method, and the base URL of the server.
  package typealias Name = (nsid: String, service: String)

  /// Why it was not read on.
  package enum Reason: Equatable, Sendable {
    /// The server names a cursor that it has named before.
    case repeatedCursor
    /// The last pages had no entry, or only those of earlier pages.
    case nothingNew
    /// The list has at least this many entries, the caller's limit.
    case tooLong(Int)
    /// The cursor has this many bytes.
    case longCursor(Int)
  }

  /// The method that lists.
  package let nsid: String
  /// The base URL of the server.
  package let service: String
  /// How many entries came.
  package let count: Int
  /// Why it was not read on.
  package let reason: Reason

  /// How many pages in a row may bring nothing new.
  package static let maximumIdlePages = 100
  /// The longest cursor that is sent back, in bytes: it becomes a part of a URL.
  ///
  /// Those of real servers are a CID or a number.
  package static let maximumCursor = 4 << 10

  /// What it says of the answers.
  package var faultKind: FaultKind { .limit }

  init(_ name: Name, after count: Int, _ reason: Reason) {
    (nsid, service) = name
    (self.count, self.reason) = (count, reason)
  }

  /// The message for people.
  package var description: String {
    let why =
      switch reason {
      case .repeatedCursor: "the server names a cursor for the second time"
      case .nothingNew: "\(Self.maximumIdlePages) pages in a row brought nothing new"
      case .tooLong(let limit): "it does not end (limit \(limit) entries)"
      case .longCursor(let length):
        "the cursor for the next page has \(length) bytes (limit \(Self.maximumCursor))"
      }
    let entries = count == 1 ? "1 entry" : "\(count) entries"
    return "\(nsid) at \(service): the list broke off after \(entries): \(why)"
  }
}
