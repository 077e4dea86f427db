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
  ///   - witnesses: the origins of those who are asked whether an account was deleted.
  package static func live(
    _ network: Network, _ options: AccountBackup.Options, into destination: BucketDestination,
    asking witnesses: [String]
  ) -> FleetWorker.Tasks {
    FleetWorker.Tasks(
      backUp: { lease, located, observer in
        var options = options
        options.located = { _, server in try await located(server) }
        // Before anything else is asked: its server may have no room, as all of a bad one.
        if lease.host.isEmpty {
          options.document = try await IdentityResolver(network: network).dids.document(
            of: lease.did)
          if let server = options.document?.document.pds { try await located(server) }
        }
        guard lease.isIdentified, lease.state == .active, !lease.host.isEmpty else {
          return try await backUp(lease, options, network, destination, observer)
        }
        // The account's own server alone is asked, and of what has not changed nothing else.
        do {
          options.newest = try await XRPCClient(service: lease.host, network: network)
            .latestCommit(of: lease.did)
          if let newest = options.newest, newest.rev.text == lease.rev,
            "\(newest.cid)" == lease.head
          {
            return FleetOutcome(.complete)
          }
          options.trustsKeptIdentity = true
          return try await backUp(lease, options, network, destination, observer)
        } catch let error where !HostFault.isHosts(error) && !(error is FleetWorker.Moved) {
          // It may have moved, or have another key.
          try Task.checkCancellation()
          (options.trustsKeptIdentity, options.newest) = (false, nil)
          return try await backUp(lease, options, network, destination, observer)
        }
      },
      deletion: { did in try await Deletion.find(of: did, network, asking: witnesses) },
      keyAside: { did, day in destination.keyAside(of: did, on: day) },
      putAside: { did, key in _ = try await destination.putAside(did, at: key) },
      bringBack: { did, key in try await destination.bringBack(did, from: key) },
      removeAside: { key in try await destination.removeAside(key) },
      list: { host, take in
        var accounts = ServerAccounts(XRPCClient(service: host, network: network))
        while let page = try await accounts.nextPage() {
          let listed = page.map { repo in
            FleetListed(
              did: repo.did, rev: repo.rev?.text,
              state: repo.active ? .active : repo.status.map { .init(status: $0) } ?? .active)
          }
          guard try await take(listed) else { return }
        }
      })
  }

  private static func backUp(
    _ lease: FleetDatabase.Lease, _ options: AccountBackup.Options, _ network: Network,
    _ destination: BucketDestination, _ observer: @escaping @Sendable (BackupEvent) -> Void
  ) async throws -> FleetOutcome {
    var options = options
    options.recipients = lease.recipients
    let backup = AccountBackup(network: network, options: options, observer: observer)
    var outcome = FleetOutcome(try await backup.run(.did(lease.did), into: .bucket(destination)))
    outcome.isIdentified = !options.trustsKeptIdentity
    return outcome
  }
}
