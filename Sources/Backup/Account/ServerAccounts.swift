public import ATProtocol
internal import IPLD
public import XRPC

/// All accounts that a server lists, page by page (`com.atproto.sync.listRepos`).
public struct ServerAccounts: AsyncSequence, Sendable {
  /// An account of the list, or one that the server lists and does not give out.
  public typealias Element = FleetBackup.Account

  private let client: XRPCClient
  private let inactive: @Sendable (DID, String) -> Void

  /// The accounts of a server.
  ///
  /// - Parameters:
  ///   - client: what asks the server.
  ///   - inactive: is told of accounts that the server lists as ones that it does not give out, with what it calls that.
  public init(_ client: XRPCClient, inactive: @escaping @Sendable (DID, String) -> Void) {
    self.client = client
    self.inactive = inactive
  }

  /// An iterator at the first account.
  public func makeAsyncIterator() -> Iterator { Iterator(client: client, inactive: inactive) }

  /// Asks for a page when the one before has been gone through.
  public struct Iterator: AsyncIteratorProtocol {
    let client: XRPCClient
    let inactive: @Sendable (DID, String) -> Void
    private var page: ArraySlice<ListRepos.Repo> = []
    private var cursor: String?
    /// The hashes of the cursors so far: a list that comes back to one goes round.
    private var cursors: Set<Int> = []
    private var isAtEnd = false

    init(client: XRPCClient, inactive: @escaping @Sendable (DID, String) -> Void) {
      self.client = client
      self.inactive = inactive
    }

    /// The next account that the server gives out.
    ///
    /// - Throws: what the client throws.
    public mutating func next() async throws -> FleetBackup.Account? {
      while true {
        guard let repo = page.popFirst() else {
          if isAtEnd { return nil }
          let output = try await client.call(ListRepos(limit: 1000, cursor: cursor))
          page = output.repos[...]
          // A list that brings nothing, or begins again, has come to its end.
          let next = output.cursor ?? ""
          isAtEnd =
            output.repos.isEmpty || next.isEmpty || !cursors.insert(next.hashValue).inserted
          cursor = next
          continue
        }
        guard repo.active else {
          inactive(repo.did, repo.status ?? "inactive")
          continue
        }
        return FleetBackup.Account(.did(repo.did), head: repo.head)
      }
    }
  }
}
