public import ATProtocol
internal import Files
public import HTTP
public import IPLD
internal import Remote
package import Snapshots
package import XRPC

/// Backs up a live account (its identity, its repository, every blob) into an existing archive or a
/// new one.
///
/// ```swift
/// let backup = AccountBackup(network: network, options: options) { event in … }
/// let report = try await backup.run(ATIdentifier("alice.example"), into:
/// .folder(ArchiveFolder("backups")))
/// ```
///
/// 1. Nothing is appended of a repository that has not been checked; a blob is appended only if its
///    bytes hash to its CID.
/// 2. What has been appended is not fetched again, however a backup ends: the next backup uses it.
/// 3. If nothing has changed and nothing is missing, nothing is written.
public struct AccountBackup: Sendable {
  /// The warning about an existing archive that is not sealed although it was meant to be.
  package static let unsealed =
    "the archive is not sealed, because only new archives are; \"carpack seal\" makes a sealed copy"

  /// How to back up.
  public struct Options: Sendable {
    /// The zstd level.
    package var level = 3
    /// How much parity protects what is added, in percent; nil for the percentage that the archive
    /// has.
    package var parity: Int?
    /// Whether the archive's content is compared with its checksums before the archive counts as up
    /// to date.
    package var checksHeld = true
    /// Whether to plan only, and write nothing.
    public var isDryRun = false
    /// How old, in seconds, the last check against the server may be for an account to be skipped;
    /// nil to skip none.
    package var maximumAge: Int64?
    /// How many transfers run at a time.
    public var connections = 16
    /// The memory for blobs in transfer, shared by all accounts.
    package var memory = MemoryBudget(8 << 20)
    /// How long a blob may be, in bytes, whatever a record says.
    package var maxBlob = Self.largestBlob
    /// How long a repository's CAR may be, in bytes, decompressed.
    package var maxRepository = Self.largestRepository
    /// Whether repositories are requested compressed, which helps only on slow lines.
    package var isCompressed = false
    /// The session for what the server gives only to the account's owner; nil to ask without a
    /// login.
    package var session: (@Sendable (DID, _ server: String, Network) async throws -> Session)?
    /// The password of the operator of the server that the network's options name; it is shown to
    /// each account's server.
    package var admin: Secret?
    /// Whether what the server keeps for the account's owner alone is requested, too; it takes a
    /// `session`.
    package var keepsPrivateData = false
    /// How long private data may take, all of it together; what has not come by then is noted as
    /// not fetched.
    package var privateDataLimit = Self.longestPrivateData
    /// What is requested from an app view in addition to the backup; nil for nothing.
    package var context: ContextOptions?
    /// Whether the identity in the archive is trusted, so that no directory is asked.
    package var trustsKeptIdentity = false
    /// The DID document, if it was fetched a moment ago.
    package var document: (bytes: [UInt8], document: DIDDocument)?
    /// The newest commit, if the server has just named it.
    package var newest: LatestCommit?
    /// Called with the account and its server before the server is asked; what it throws ends the
    /// backup.
    package var located: (@Sendable (DID, _ server: String) async throws -> Void)?
    /// Whether a new archive is to be sealed, so that the user is warned of one that is not.
    package var isToBeSealed = false
    /// The age recipients to which a new archive in a bucket is sealed besides the program's own.
    package var recipients: [String] = []
    /// Doubts about the account that the user accepts; they are noted as accepted.
    package var accepted: Set<Standing.Doubt> = []
    /// Name and version of the program.
    package var tool: String
    /// The operating system.
    package var hostSystem: String
    /// Returns the moment, in RFC 3339 and UTC.
    package var now: @Sendable () -> String
    /// Returns the milliseconds since some moment.
    package var milliseconds: @Sendable () -> Int

    /// How long a blob may be by default, in bytes.
    package static let largestBlob = 300_000_000
    /// How long a repository's CAR may be by default, in bytes, decompressed.
    package static let largestRepository = 2 << 30
    /// How long private data may take by default.
    package static let longestPrivateData: Duration = .seconds(2400)

    /// Options with these facts.
    public init(
      tool: String, hostSystem: String, now: @escaping @Sendable () -> String,
      milliseconds: @escaping @Sendable () -> Int
    ) {
      (self.tool, self.hostSystem) = (tool, hostSystem)
      (self.now, self.milliseconds) = (now, milliseconds)
    }
  }

  let network: Network
  private(set) var options: Options
  private(set) var observer: @Sendable (BackupEvent) -> Void

  /// A backup.
  public init(
    network: Network, options: Options, observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    (self.network, self.options, self.observer) = (network, options, observer)
  }

  /// Backs up an account.
  ///
  /// - Parameters:
  ///   - account: which.
  ///   - knownHead: its newest commit, if a server has said so already.
  ///   - destination: where its archive is, or is to be.
  /// - Throws: what keeps the repository from being fetched (`IdentityError`, `XRPCError`,
  ///   `TransportError`, `BackupError`, `CARError`), or the archive from being written
  ///   (`ArchiveError`); `CancellationError`. The archive has what had arrived by then.
  public func run(
    _ account: ATIdentifier, knownHead: CID? = nil, into destination: Destination
  ) async throws -> BackupReport {
    try await run(account, knownHead: knownHead, into: destination, locks: RunLocks())
  }

  /// Backs up an account, unless another backup of the same run does.
  ///
  /// - Throws: ``RunLocks/Taken``; what ``run(_:knownHead:into:)`` throws.
  func run(
    _ account: ATIdentifier, knownHead: CID?, into destination: Destination, locks: RunLocks
  ) async throws -> BackupReport {
    let lookup = ArchiveLookup(
      destination, locks, isReadOnly: false, recipients: options.recipients)
    var backup = self
    // To compare what is stored with its checksums is to fetch all of it.
    if destination.bucket != nil { backup.options.checksHeld = false }
    return try await BucketDestination.retryingLostRaces(
      lost: {
        observer(.warning("another writer was faster; the backup continues from its state"))
      },
      { [backup] in
        let begin = options.milliseconds()
        defer { lookup.release() }
        let (archive, identity, isRecent) = try await backup.find(account, knownHead, lookup)
        guard let identity else {
          guard let base = lookup.base else { throw SnapshotError.noSnapshot }
          try await archive.publish()
          if !isRecent { base.markCurrent(at: options.now(), in: archive.path) }
          return .unchanged(
            base, at: archive.name, isRecent ? .recent : nil,
            milliseconds: options.milliseconds() - begin, missing: try base.ledger().missing)
        }
        // Another process that makes the same archive is met before anything is fetched.
        try await archive.claim()
        if let replaced = archive.replaced { observer(.warning(replaced)) }
        return try await BackupRun(backup, identity, account, archive, lookup.base, begin: begin)
          .run()
      })
  }

  /// Finds out what ``run(_:knownHead:into:)`` would do.
  ///
  /// Nothing is written or locked, and no file or folder is made.
  ///
  /// - Throws: as ``run(_:knownHead:into:locks:)`` does, except for errors of fetching and
  ///   writing.
  func plan(_ account: ATIdentifier, into destination: Destination, locks: RunLocks)
    async throws -> BackupPlan
  {
    let lookup = ArchiveLookup(destination, locks, isReadOnly: true)
    defer { lookup.release() }
    var quiet = self
    // The plan has all warnings.
    quiet.observer = { [observer] in if case .warning = $0 {} else { observer($0) } }
    let (archive, identity, _) = try await find(account, nil, lookup)
    if let identity {
      return try await BackupRun(quiet, identity, account, archive, lookup.base, begin: 0).plan()
    }
    guard let base = lookup.base?.snapshot else { throw SnapshotError.noSnapshot }
    return BackupPlan(
      did: base.did, handle: base.handle, server: nil, name: archive.name,
      exists: !archive.isNew, repository: .recent, heldRevision: base.rev)
  }

  /// Finds an account's archive, and who the account is.
  ///
  /// - Returns: No identity for an account that is skipped, either because it was checked recently,
  ///   or because the archive has the commit that a server has named as its newest.
  private func find(_ account: ATIdentifier, _ knownHead: CID?, _ lookup: ArchiveLookup)
    async throws -> (DestinationArchive, AccountIdentity?, isRecent: Bool)
  {
    observer(.progress(BackupProgress(.resolving)))
    try await lookup.find(account)
    if let base = lookup.base, let archive = lookup.archive, options.accepted.isEmpty {
      let now = Moment(options.now())
      let isNewest =
        base.snapshot.commit == knownHead && base.snapshot.hasEverythingKnown
        && !options.keepsPrivateData && options.context == nil
        && base.snapshot.hasFreshIdentity(at: now, in: archive.path)
      let isRecent =
        !isNewest && (base.snapshot.privateData != nil || !options.keepsPrivateData)
        && (base.snapshot.context != nil || options.context == nil)
        && options.maximumAge.map { base.wasCurrent(within: $0, before: now, in: archive.path) }
          ?? false
      if isNewest || isRecent, archive.losses.isEmpty,
        try !options.checksHeld || archive.storedDamage().isNone
      {
        try lookup.claim(base.snapshot.did)
        return (archive, nil, isRecent)
      }
    }
    let identity = try await AccountIdentity(
      account, base: lookup.base, in: lookup.archive?.path, at: options.now(), network: network,
      known: options.document, trustsKept: options.trustsKeptIdentity)
    try await options.located?(identity.did, identity.server)
    try lookup.claim(identity.did)
    if lookup.base?.snapshot.did != identity.did { try await lookup.find(identity) }
    guard let archive = lookup.archive else { throw BackupError.notFound(account.text) }
    return (archive, identity, false)
  }
}
