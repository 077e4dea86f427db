internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Synchronization
internal import Terminal
internal import XRPC

/// The accounts that a fleet's verb is told, as the DIDs by which the fleet knows them.
enum FleetAccounts {
  /// How many handles are looked up at a time.
  private static let atATime = 16

  /// Looks up handles; one that does not resolve stops no other.
  ///
  /// - Throws: `TransportError` if the options cannot be used; `CancellationError`.
  /// - Returns: The DIDs in the order of the accounts, and why others have none.
  static func resolve(_ accounts: [ATIdentifier], _ options: NetworkOptions) async throws
    -> (dids: [DID], failures: [Failure])
  {
    let resolver = IdentityResolver(network: try Network(options))
    let results = Mutex([Result<DID, Failure>?](repeating: nil, count: accounts.count))
    try await forEachConcurrently(Array(accounts.indices), atATime: atATime) { index in
      let result: Result<DID, Failure>
      do {
        result = .success(try await resolver.did(of: accounts[index]))
      } catch let error where !(error is CancellationError) {
        result = .failure(Failure(error).of(accounts[index].text))
      }
      results.withLock { $0[index] = result }
    }
    var (dids, failures): ([DID], [Failure]) = ([], [])
    for case .some(let result) in results.withLock({ $0 }) {
      switch result {
      case .success(let did): dids.append(did)
      case .failure(let failure): failures.append(failure)
      }
    }
    return (dids, failures)
  }
}
