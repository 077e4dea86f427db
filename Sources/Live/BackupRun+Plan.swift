internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots
internal import XRPC

extension BackupRun {
  /// How many blobs records may refer to, for what is known without the repository.
  private static let maximumReferenced = 500_000

  /// Finds out what ``run(into:)`` would do.
  func plan(_ archive: DestinationArchive) async throws -> BackupPlan {
    identity.warnings.forEach(warn)
    let latest = try await client.latestCommit(of: identity.did)
    let repository: BackupPlan.Repository =
      switch (base, latest) {
      case (nil, _): .first
      case (_, nil): .unknown
      case (let base?, let latest?):
        base.snapshot.commit == latest.cid && base.snapshot.isComplete ? .unchanged : .changed
      }
    var plan = BackupPlan(
      did: identity.did, handle: identity.handle, server: identity.server, name: archive.name,
      exists: !archive.isNew, repository: repository, heldRevision: base?.snapshot.rev)
    plan.newestRevision = latest?.rev
    // Of an account that has not changed and lacks nothing, a backup requests no list.
    if repository != .unchanged || base?.snapshot.isWhole != true {
      plan.blobs = try blobs(try await listBlobs(Self.maximumReferenced), archive.reader)
    }
    plan.warnings = warnings
    return plan
  }

  private func blobs(_ listing: BlobListing, _ reader: ArchiveReader?) throws -> BackupPlan.Blobs {
    let missing = try base?.readableLists().missing ?? []
    let sizes = Dictionary(
      missing.map { ($0.cid, $0.size) }, uniquingKeysWith: { first, _ in first })
    var seen: Set<CID> = []
    let cids = (Array(listing.list) + missing.map(\.cid)).filter { seen.insert($0).inserted }
    var blobs = BackupPlan.Blobs()
    blobs.listed = listing.fault != nil && listing.list.isEmpty ? nil : listing.list.count
    let states = try reader?.states(
      cids.count, isChecking: options.checksHeld && reader?.liesElsewhere != true
    ) { cids[$0] }
    for (index, cid) in cids.enumerated() where states?[index].bodyLength == nil {
      blobs.wanted += 1
      if let size = sizes[cid] ?? nil {
        blobs.declaredBytes = blobs.declaredBytes.addingSaturated(UInt64(clamping: size))
      } else {
        blobs.unsized += 1
      }
    }
    return blobs
  }
}
