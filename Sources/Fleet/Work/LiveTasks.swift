internal import ATProtocol
package import HTTP
package import Live
package import Remote
internal import XRPC

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
      list: { host, take in
        var accounts = ServerAccounts(XRPCClient(service: host, network: network))
        while let page = try await accounts.nextPage() {
          guard try await take(page.map { FleetListed($0) }) else { return }
        }
      })
  }
}

extension FleetListed {
  fileprivate init(_ repo: ListedRepo) {
    self.init(did: repo.did, rev: repo.rev?.text, state: .active)
    // What the server does not say more of, only a backup finds out.
    if !repo.active, let status = repo.status {
      state = FleetOutcome.State(rawValue: status) ?? .deactivated
    }
  }
}
