internal import ATProtocol
internal import Files
package import Live
package import Remote
package import XRPC

extension FleetWorker.Tasks {
  /// The real ones: accounts are backed up from their servers into a bucket.
  ///
  /// - Parameters:
  ///   - network: the way to servers.
  ///   - options: how an account is backed up.
  ///   - destination: where archives go.
  package static func live(
    _ network: Network, _ options: AccountBackup.Options, into destination: BucketDestination
  ) -> FleetWorker.Tasks {
    FleetWorker.Tasks(
      backUp: { did in
        let backup = AccountBackup(network: network, options: options) { _ in }
        return FleetOutcome(try await backup.run(.did(did), into: .bucket(destination)))
      },
      remove: { did in try await destination.removeArchive(of: did) },
      list: { host, page in
        try await list(XRPCClient(service: host, network: network), page)
      })
  }

  /// How many pages in a row may bring no account before the list is taken for endless.
  private static let maximumBarrenPages = 100

  private static func list(
    _ client: XRPCClient, _ take: ([FleetListed]) async throws -> Bool
  ) async throws {
    var cursor: String?
    var cursors: Set<Int> = []
    var barrenPages = 0
    repeat {
      let output = try await client.call(
        ListRepos(limit: ListRepos.maximumLimit, cursor: cursor))
      barrenPages = output.repos.isEmpty ? barrenPages + 1 : 0
      guard barrenPages < maximumBarrenPages else { throw BackupError.endlessList(client.service) }
      guard try await take(output.repos.map { FleetListed($0) }) else { return }
      // A list that brings nothing, or begins again, has come to its end.
      cursor = output.repos.isEmpty && output.malformed.isEmpty ? nil : output.cursor
    } while cursor.map { !$0.isEmpty && cursors.insert($0.hashValue).inserted } ?? false
  }
}

extension FleetListed {
  fileprivate init(_ repo: ListRepos.Repo) {
    self.init(did: repo.did, rev: repo.rev?.text, state: .active)
    // What the server does not say more of, only a backup finds out.
    if !repo.active, let status = repo.status {
      state = FleetOutcome.State(rawValue: status) ?? .deactivated
    }
  }
}
