package import ATProtocol
internal import Archive

/// Reading the selected snapshots, also of an archive that has lost manifests.
extension SnapshotHistory {
  /// Refuses a history from which nothing can be chosen.
  ///
  /// - Throws: Why there is no snapshot, or why the newest cannot be used.
  package func refuseUnusable() throws {
    if let foreignManifest { throw foreignManifest }
    if entries.isEmpty { throw whyEmpty }
  }

  /// The selected snapshots, one at most of each account: without a selector the newest.
  ///
  /// Of an archive that has lost all manifests, what is left, if nothing is chosen.
  ///
  /// - Throws: ``SelectionError``; ``SnapshotError``; why there is no snapshot.
  package func snapshots(
    _ selector: SnapshotSelector?, of account: String?
  ) throws -> (snapshots: [ArchivedSnapshot], areSalvaged: Bool) {
    if let foreignManifest { throw foreignManifest }
    guard entries.isEmpty else {
      let found = try select(selector ?? .latest, of: self.account(account))
      return (try found.map { try ArchivedSnapshot($0.cid, in: reader) }, false)
    }
    guard selector == nil, account == nil else { throw whyEmpty }
    guard !breaks.isEmpty || reader.recovery != nil || reader.generation.features.isRepaired else {
      throw SnapshotError.noSnapshot
    }
    return ([try ArchivedSnapshot.salvaged(from: reader)], true)
  }

  /// The account that an AT URI names; nil if it is not in the archive.
  ///
  /// Where no handle was ever known, any may be the account's.
  package func owner(_ authority: String) throws -> DID? {
    do {
      return try account(authority)
    } catch {
      guard case .noSuchAccount = error else { throw error }
      let accounts =
        entries.isEmpty
        ? [try ArchivedSnapshot.salvaged(from: reader).snapshot.did]
        : newestOfAccounts.map(\.did)
      guard accounts.count == 1, let only = accounts.first else { return nil }
      return authority.hasPrefix("did:") || entries.contains { $0.handle != nil }
        ? (authority == only.text ? only : nil) : only
    }
  }

  private var whyEmpty: any Error {
    breaks.first.map { $0 as any Error } ?? SnapshotError.noSnapshot
  }

  /// Why the newest manifest cannot be used, if that is not damage: a later version wrote it, and
  /// an older one in its place would mislead.
  private var foreignManifest: SnapshotError? {
    guard let first = breaks.first(where: { $0.isOfManifest }), first.after == nil,
      case .unusableManifest(_, let error) = first.reason
    else { return nil }
    if case .blockMissing = error { return nil }
    return error
  }
}
