internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Remote
internal import Snapshots
internal import SystemPackage
internal import XRPC

extension AccountBackup {
  /// Finds out what ``run(_:knownHead:into:)`` would do.
  ///
  /// Nothing is written or locked, and no file or folder is made.
  ///
  /// - Throws: as ``run(_:knownHead:into:claims:)`` does, except for errors of fetching and
  ///   writing.
  func plan(_ account: ATIdentifier, into destination: Destination, claims: AccountClaims)
    async throws -> BackupPlan
  {
    observer(.progress(BackupProgress(.resolving)))
    var archive = try await ReadArchive(account, at: destination)
    if let archive, let base = archive.base, let maximumAge = options.maximumAge,
      base.snapshot.privateData != nil || !options.keepsPrivateData,
      base.wasCurrent(within: maximumAge, before: Moment(options.now()), in: archive.path)
    {
      try claims.claim(base.snapshot.did, for: claims.file())
      return BackupPlan(
        did: base.snapshot.did, handle: base.snapshot.handle, server: nil, name: archive.name,
        exists: archive.exists, repository: .recent, heldRevision: base.snapshot.rev,
        newestRevision: nil, blobs: BackupPlan.Blobs(), warnings: [])
    }
    let identity = try await AccountIdentity(
      account, base: archive?.base, in: archive?.path, at: options.now(), network: network)
    try claims.claim(identity.did, for: claims.file())
    if archive?.base?.snapshot.did != identity.did {
      archive = try await ReadArchive(identity, at: destination)
    }
    guard let archive else { throw BackupError.notFound(account.text) }
    observer(.resolved(identity.did, handle: identity.handle, server: identity.server))
    let client = XRPCClient(
      service: identity.server, network: network,
      session: try await identity.session(options.session, for: account, network: network))
    return try await plan(identity, archive, client)
  }

  private func plan(_ identity: AccountIdentity, _ archive: ReadArchive, _ client: XRPCClient)
    async throws -> BackupPlan
  {
    var warnings = identity.warnings
    let base = archive.base
    let latest = try await client.latestCommit(of: identity.did)
    let repository: BackupPlan.Repository =
      switch (base, latest) {
      case (nil, _): .first
      case (_, nil): .unknown
      case (let base?, let latest?):
        base.snapshot.commit == latest.cid && base.snapshot.isComplete ? .unchanged : .changed
      }
    var blobs = BackupPlan.Blobs()
    // Of an account that has not changed and lacks nothing, a backup asks for no list.
    if repository != .unchanged || base?.snapshot.isWhole != true {
      let listed = try await list(identity.did, client, &warnings)
      blobs = try Self.blobs(
        listed, archive, isChecking: options.checksHeld && archive.reader?.liesElsewhere != true)
    }
    return BackupPlan(
      did: identity.did, handle: identity.handle, server: identity.server, name: archive.name,
      exists: archive.exists, repository: repository, heldRevision: base?.snapshot.rev,
      newestRevision: latest?.rev, blobs: blobs, warnings: warnings)
  }

  /// How many blobs a server may list before the list is taken for one without an end.
  private static let maximumListed = 500_000

  private func list(_ did: DID, _ client: XRPCClient, _ warnings: inout [String]) async throws
    -> [CID]?
  {
    observer(.progress(BackupProgress(.listing)))
    do {
      let listing = try await BlobListing.fetch(
        of: did, from: client, referenced: Self.maximumListed
      ) { [observer] count in
        var progress = BackupProgress(.listing)
        progress.blobsTotal = count
        observer(.progress(progress))
      }
      if listing.isDoubtful || listing.malformedCount > 0 {
        warnings.append(
          "the server's list of blobs may not be whole, or has entries that are no CIDs")
      }
      return listing.cids
    } catch let error where error is XRPCError || error is TransportError {
      warnings.append("the server does not list its blobs: \(error)")
      return nil
    }
  }

  private static func blobs(_ listed: [CID]?, _ archive: ReadArchive, isChecking: Bool) throws
    -> BackupPlan.Blobs
  {
    let missing = try archive.base?.readableLists().missing ?? []
    let sizes = Dictionary(
      missing.map { ($0.cid, $0.size) }, uniquingKeysWith: { first, _ in first })
    var seen: Set<CID> = []
    let cids = ((listed ?? []) + missing.map(\.cid)).filter { seen.insert($0).inserted }
    var blobs = BackupPlan.Blobs()
    blobs.listed = listed?.count
    let states = try archive.reader?.states(cids.count, isChecking: isChecking) { cids[$0] }
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

/// The archive of an account, opened to look into it.
private struct ReadArchive {
  /// What a person calls it.
  let name: String
  /// Where it is, or would be; of one in a bucket, a file here to note things on.
  let path: FilePath
  /// Whether it is there under its name.
  let exists: Bool
  /// What it holds, or what an interrupted backup has left; nil for nothing.
  let reader: ArchiveReader?
  /// The newest snapshot of the account.
  let base: ArchivedSnapshot?

  /// The archive of an account, found by the account's name; nil if only its DID can tell.
  init?(_ account: ATIdentifier, at destination: AccountBackup.Destination) async throws {
    guard let place = try destination.archive(of: account) else { return nil }
    try await self.init(place, account, destination)
    if case .folder = destination, base == nil { return nil }
  }

  /// The archive that an account has or would have.
  init(_ identity: AccountIdentity, at destination: AccountBackup.Destination) async throws {
    try await self.init(
      destination.archive(of: identity, isMade: false), .did(identity.did), destination)
  }

  private init(
    _ place: ArchivePlace, _ account: ATIdentifier, _ destination: AccountBackup.Destination
  ) async throws {
    name = place.name
    switch (place, destination) {
    case (.object(let address), .bucket(let bucket)):
      let file = try await bucket.map(address)
      path = UploadMark.file(of: "\(address)", in: bucket.options.cache, ending: "notes")
      exists = file != nil
      reader = try file.map { (file) throws in try ArchiveReader(file) }
    case (.file(let path), _):
      self.path = path
      exists = AtomicFile.isTaken(path)
      reader = exists ? try ArchiveReader(path: path) : try Self.leftover(of: path)
    case (.object, _): throw BackupError.notFound(place.name)
    }
    base = try ArchivedSnapshot.newest(of: account, in: reader)
  }

  /// What an interrupted backup has committed under the temporary name; nil for nothing.
  private static func leftover(of path: FilePath) throws -> ArchiveReader? {
    let temporary = AtomicFile.leftoverPath(of: path)
    guard AtomicFile.isTaken(temporary) else { return nil }
    do {
      let reader = try ArchiveReader(path: temporary)
      return reader.generation.number > 0 ? reader : nil
    } catch is ArchiveError {
      // The backup decides what can be continued, and begins again where nothing can.
      return nil
    }
  }
}
