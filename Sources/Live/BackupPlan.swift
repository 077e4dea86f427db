package import ATProtocol
internal import Archive
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// What a backup of an account would do, as far as that is known without fetching its repository.
package struct BackupPlan: Sendable {
  /// What is known of the repository.
  package enum Repository: Equatable, Sendable {
    /// The archive has no snapshot of the account: the whole repository would be fetched.
    case first
    /// The archive has the newest commit.
    case unchanged
    /// The archive has an older commit: what changed would be fetched.
    case changed
    /// The server does not say which commit is the newest.
    case unknown
    /// It was checked against the server recently, so no request was made.
    case recent
  }

  /// The account.
  package let did: DID
  /// Its handle.
  package let handle: Handle?
  /// The server that would be asked; nil if no request was made.
  package let server: String?
  /// What the archive is called: a file's path, or an address in a bucket.
  package let name: String
  /// Whether the archive is there.
  package let exists: Bool
  /// What is known of the repository.
  package let repository: Repository
  /// The revision that the archive has.
  package let heldRevision: TID?
  /// The server's newest revision; nil if it was not asked, or does not say.
  package internal(set) var newestRevision: TID?
  /// The blobs that would be requested.
  package internal(set) var blobs: Blobs = (nil, 0, 0, 0)
  /// The app view from which new context would be requested; nil if none.
  package internal(set) var appView: String?
  /// Warnings for the user.
  package internal(set) var warnings: [String] = []

  /// The blobs to fetch: listed by the server or known to be missing, and not held.
  ///
  /// Records that are not known yet may refer to more blobs.
  ///
  /// `listed` is how many the server lists, nil if it was not asked, or does not say; `wanted` how
  /// many are to be fetched; `declaredBytes` the declared size of those whose size is known;
  /// `unsized` how many of them have an unknown size.
  package typealias Blobs = (listed: Int?, wanted: Int, declaredBytes: UInt64, unsized: Int)
}

extension BackupRun {
  /// How many blobs records may refer to, as far as that is known without the repository.
  private static let maximumReferenced = 500_000

  /// Finds out what ``run()`` would do.
  func plan() async throws -> BackupPlan {
    warnOfState()
    let latest = try await client.latestCommit(of: identity.did)
    let repository: BackupPlan.Repository =
      switch (base, latest) {
      case (nil, _): .first
      case (_, nil): .unknown
      case (let base?, let latest?):
        base.snapshot.commit == latest.cid && base.snapshot.isComplete ? .unchanged : .changed
      }
    var plan = BackupPlan(
      did: identity.did, handle: identity.handle, server: identity.server, name: target.name,
      exists: !target.isNew, repository: repository, heldRevision: base?.snapshot.rev)
    plan.newestRevision = latest?.rev
    // For an account that has not changed and lacks nothing, a backup requests no list.
    if repository != .unchanged || base?.snapshot.isWhole != true {
      plan.blobs = try blobs(try await listBlobs(Self.maximumReferenced), target.reader)
    }
    plan.appView = options.context?.appView
    plan.warnings = warnings
    return plan
  }

  private func blobs(_ listing: BlobListing, _ reader: ArchiveReader?) throws -> BackupPlan.Blobs {
    let missing = try base?.readableLists().missing ?? []
    let sizes = Dictionary(
      missing.map { ($0.cid, $0.size) }, uniquingKeysWith: { first, _ in first })
    var seen: Set<CID> = []
    let cids = (Array(listing.list) + missing.map(\.cid)).filter { seen.insert($0).inserted }
    var blobs: BackupPlan.Blobs = (nil, 0, 0, 0)
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
