package import ATProtocol
internal import Files
internal import IPLD
package import XRPC

/// All accounts that a server lists, page by page (`com.atproto.sync.listRepos`).
package struct ServerAccounts: AsyncSequence, Sendable {
  /// An account of the list, or one that the server lists and does not give out.
  package typealias Element = MultiAccountBackup.Account

  private let client: XRPCClient
  private let inactive: @Sendable (DID, String) -> Void
  private let malformed: @Sendable ([String]) -> Void

  /// How many pages in a row may bring no account before the list is taken for endless.
  static let maximumBarrenPages = 100

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
    self.client = client
    self.inactive = inactive
    self.malformed = malformed
  }

  /// An iterator at the first account.
  package func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// Asks for a page when the one before has been gone through.
  package struct Iterator: AsyncIteratorProtocol {
    private let list: ServerAccounts
    private var page: ArraySlice<ListRepos.Repo> = []
    private var cursor: String?
    /// The hashes of the cursors so far: a list that comes back to one goes round.
    private var cursors: Set<Int> = []
    private var isAtEnd = false
    /// How many pages in a row have brought no account.
    private var barrenPages = 0

    init(_ list: ServerAccounts) { self.list = list }

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
          list.inactive(repo.did, repo.status ?? "inactive")
          continue
        }
        return MultiAccountBackup.Account(.did(repo.did), head: repo.head)
      }
    }

    private mutating func fetchPage() async throws {
      let output = try await list.client.call(
        ListRepos(limit: ListRepos.maximumLimit, cursor: cursor))
      page = output.repos[...]
      if !output.malformed.isEmpty { list.malformed(output.malformed) }
      // A list that brings nothing, or begins again, has come to its end.
      let next = output.cursor ?? ""
      isAtEnd =
        (output.repos.isEmpty && output.malformed.isEmpty) || next.isEmpty
        || !cursors.insert(next.hashValue).inserted
      cursor = next
      barrenPages = output.repos.isEmpty ? barrenPages + 1 : 0
      guard barrenPages < maximumBarrenPages else {
        throw BackupError.endlessList(list.client.service)
      }
    }
  }
}
