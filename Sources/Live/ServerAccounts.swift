package import ATProtocol
internal import Files
internal import IPLD
package import XRPC

/// All accounts that a server lists, page by page (`com.atproto.sync.listRepos`).
package struct ServerAccounts: AsyncSequence, AsyncIteratorProtocol, Sendable {
  /// An account that the server gives out.
  package typealias Element = MultiAccountBackup.Account

  private let client: XRPCClient
  private let inactive: @Sendable (DID, String) -> Void
  private let malformed: @Sendable ([String]) -> Void

  private var page: ArraySlice<ListRepos.Repo> = []
  private var cursor: String?
  /// The hashes of the cursors so far: a list that returns to one is circular.
  private var cursors: Set<Int> = []
  private var isAtEnd = false
  /// How many pages in a row have brought no account.
  private var emptyPages = 0

  /// How many pages in a row may bring no account before the list is taken for endless.
  static let maximumEmptyPages = 100

  /// The accounts of a server.
  ///
  /// - Parameters:
  ///   - client: what asks the server.
  ///   - inactive: is told of accounts that the server lists as ones that it does not give out,
  ///     with what it calls that.
  ///   - malformed: is told of entries without a valid DID, page by page: what stands in its place.
  package init(
    _ client: XRPCClient, inactive: @escaping @Sendable (DID, String) -> Void,
    malformed: @escaping @Sendable ([String]) -> Void
  ) {
    (self.client, self.inactive, self.malformed) = (client, inactive, malformed)
  }

  /// The accounts, from the first on; a page is fetched when the one before has been read.
  package func makeAsyncIterator() -> ServerAccounts { self }

  /// The next account that the server gives out.
  ///
  /// - Throws: what the client throws; ``BackupError/endlessList(_:)``.
  package mutating func next() async throws -> MultiAccountBackup.Account? {
    while true {
      guard let repo = page.popFirst() else {
        if isAtEnd { return nil }
        try await fetchPage()
        continue
      }
      guard repo.active else {
        inactive(repo.did, repo.status ?? "inactive")
        continue
      }
      return (.did(repo.did), repo.head)
    }
  }

  private mutating func fetchPage() async throws {
    let output = try await client.call(
      ListRepos(limit: ListRepos.maximumLimit, cursor: cursor))
    page = output.repos[...]
    if !output.malformed.isEmpty { malformed(output.malformed) }
    // A list that brings nothing, or begins again, has come to its end.
    let next = output.cursor ?? ""
    isAtEnd =
      (output.repos.isEmpty && output.malformed.isEmpty) || next.isEmpty
      || !cursors.insert(next.hashValue).inserted
    cursor = next
    emptyPages = output.repos.isEmpty ? emptyPages + 1 : 0
    guard emptyPages < Self.maximumEmptyPages else {
      throw BackupError.endlessList(client.service)
    }
  }
}
