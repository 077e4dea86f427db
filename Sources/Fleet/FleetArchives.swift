internal import ATProtocol
internal import Archive
package import HTTP
internal import IPLD
package import ObjectStore
internal import Postgres
internal import Remote
internal import Synchronization
package import SystemPackage

/// The archives of a fleet, as an operator checks them, moves them aside and brings them back.
package struct FleetArchives: Sendable {
  private let fleet: FleetDatabase
  private let destination: BucketDestination

  /// How many archives are checked at a time.
  private static let atATime = 16

  /// The archives of a fleet in its store.
  ///
  /// - Throws: `DatabaseError`; `StoreError` if the store's address cannot be used.
  package init(
    _ fleet: FleetDatabase, _ store: StoreOptions, _ network: NetworkOptions, cache: FilePath
  ) async throws {
    self.fleet = fleet
    destination = try FleetWork.destination(
      try await fleet.settings(), store, network, cache: cache)
  }

  /// Checks whether each complete account has its archive, and makes the others due for a backup.
  ///
  /// - Parameters:
  ///   - selection: which accounts.
  ///   - fault: called with each account whose archive is not as recorded, and what is wrong.
  /// - Throws: `DatabaseError`; `FetchFailure`; `TransportError`; `CancellationError`.
  /// - Returns: How many were checked, and how many are not as recorded.
  package func check(
    _ selection: FleetSelection, fault: @escaping @Sendable (String, String) -> Void
  ) async throws -> (checked: Int, faults: Int) {
    let counts = Mutex((checked: 0, faults: 0))
    try await each(selection, where: { $0.outcome == "complete" && $0.state == "active" }) {
      account in
      let length = try await destination.length(ofArchiveOf: DID(account.did))
      let reason: String? =
        switch length {
        case nil: "its archive is not in the store"
        case let length? where length < account.bytes ?? 0:
          "its archive has \(length) bytes, but had \(account.bytes ?? 0)"
        default: nil
        }
      counts.withLock { $0.checked += 1 }
      guard let reason else { return }
      try await fleet.markAbsent(account.did, reason)
      counts.withLock { $0.faults += 1 }
      fault(account.did, reason)
    }
    return counts.withLock { $0 }
  }

  /// Moves archives aside; the accounts are no longer backed up.
  ///
  /// - Throws: `DatabaseError`; `StoreError`; `FetchFailure`; `TransportError`;
  ///   `CancellationError`.
  /// - Returns: How many.
  package func putAside(_ selection: FleetSelection) async throws -> Int {
    try await each(selection, where: { $0.state != "purged" }) { account in
      let did = try DID(account.did)
      // One that an interrupted command has begun with goes where it was going.
      let key = account.aside ?? destination.keyAside(of: did, on: FleetWorker.today)
      // No worker claims it from now on, and its destination is recorded before it moves.
      try await fleet.putAside(account.did, at: key)
      _ = try await destination.putAside(did, at: key)
    }
  }

  /// Brings archives back that were moved aside; the accounts are backed up again.
  ///
  /// - Throws: as ``putAside(_:)`` does.
  /// - Returns: How many.
  package func bringBack(_ selection: FleetSelection) async throws -> Int {
    try await each(selection, where: { $0.aside != nil }) { account in
      if let key = account.aside {
        try await destination.bringBack(DID(account.did), from: key)
      }
      try await fleet.bringBack(account.did)
    }
  }

  /// Does something with accounts, several at a time, and returns how many there were.
  @discardableResult
  private func each(
    _ selection: FleetSelection, where isMeant: (FleetAccount) -> Bool,
    _ body: @escaping @Sendable (FleetAccount) async throws -> Void
  ) async throws -> Int {
    var (last, count) = ("", 0)
    while true {
      let page = try await fleet.accounts(selection, after: last)
      guard let end = page.last else { return count }
      let meant = page.filter(isMeant)
      count += meant.count
      last = end.did
      try await forEachConcurrently(meant, atATime: Self.atATime, body)
    }
  }
}
