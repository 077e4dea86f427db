package import ATProtocol
internal import Archive
internal import Files
package import IPLD
internal import ObjectStore
package import Remote
package import Snapshots
package import SystemPackage
package import XRPC

/// Backs up a live account: who it is, its repository, every blob, into an archive that is there or
/// a new one.
///
/// ```swift
/// let backup = AccountBackup(network: network, options: options) { event in … }
/// let report = try await backup.run(ATIdentifier("alice.example"), into: .folder(ArchiveFolder("backups")))
/// ```
///
/// 1. Nothing is appended of a repository that has not been checked; a blob is appended only if its
///    bytes hash to its CID.
/// 2. What has been appended is not fetched again, however a backup ends: the next one takes it up.
/// 3. If nothing has changed and nothing is missing, nothing is written.
package struct AccountBackup: Sendable {
  /// How to back up.
  package struct Options: Sendable {
    /// The zstd level.
    package var level = 3
    /// Whether what the archive holds is compared with its checksums before it is called up to
    /// date.
    package var checksHeld = true
    /// Whether to plan only, and write nothing.
    package var isDryRun = false
    /// How old, in seconds, the last check against the server may be for an account to be skipped;
    /// nil to skip none.
    package var maximumAge: Int64?
    /// How many transfers are under way at a time.
    package var connections = 16
    /// The memory for blobs that are on their way, shared by all accounts.
    package var memory = MemoryBudget(8 << 20)
    /// How long a blob may be, in bytes, whatever a record says.
    package var maxBlob = Self.largestBlob
    /// How long a repository's CAR may be, in bytes, decompressed.
    package var maxRepository = Self.largestRepository
    /// Whether repositories are asked for compressed, which pays on slow lines alone.
    package var isCompressed = false
    /// The session to ask with, for what the server gives to the account's owner only; nil to ask
    /// as anybody.
    package var session: (@Sendable (DID, _ server: String, Network) async throws -> Session)?
    /// Whether what the server keeps for the account's owner alone is asked for, too; it takes a
    /// ``session``.
    package var keepsPrivateData = false
    /// What is not taken for evidence against the account, and noted as accepted.
    package var accepted: Set<Standing.Doubt> = []
    /// Name and version of the program.
    package var tool: String
    /// The operating system.
    package var hostSystem: String
    /// Answers the moment, in RFC 3339 and UTC.
    package var now: @Sendable () -> String
    /// Answers the milliseconds since some moment.
    package var milliseconds: @Sendable () -> Int

    /// How long a blob may be by default, in bytes.
    package static let largestBlob = 300_000_000
    /// How long a repository's CAR may be by default, in bytes, decompressed.
    package static let largestRepository = 2 << 30

    /// Options with these facts.
    package init(
      tool: String, hostSystem: String, now: @escaping @Sendable () -> String,
      milliseconds: @escaping @Sendable () -> Int
    ) {
      self.tool = tool
      self.hostSystem = hostSystem
      self.now = now
      self.milliseconds = milliseconds
    }
  }

  /// Where an archive goes.
  package enum Destination: Sendable {
    /// Into this file, unless it is another account's archive.
    case file(FilePath)
    /// Into this file, whatever accounts it has already.
    case shared(FilePath)
    /// Into a file in this folder, called after the account.
    case folder(ArchiveFolder)
    /// Into an object in a bucket.
    case bucket(BucketDestination)
  }

  let network: Network
  private(set) var options: Options
  let observer: @Sendable (BackupEvent) -> Void

  /// How many times another writer to an object may be faster.
  private static let maximumRaces = 5

  /// A backup.
  package init(
    network: Network, options: Options, observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    self.network = network
    self.options = options
    self.observer = observer
  }

  /// Backs up an account.
  ///
  /// - Parameters:
  ///   - account: which.
  ///   - knownHead: its newest commit, if a server has said so already.
  ///   - destination: where its archive is, or is to be.
  /// - Throws: what keeps the repository from being had (`IdentityError`, `XRPCError`,
  ///   `TransportError`, ``BackupError``, `CARError`), or the archive from being written
  ///   (`ArchiveError`); `CancellationError`. The archive has what had arrived by then.
  package func run(
    _ account: ATIdentifier, knownHead: CID? = nil, into destination: Destination
  ) async throws -> BackupReport {
    try await run(account, knownHead: knownHead, into: destination, claims: AccountClaims())
  }

  /// Backs up an account, unless another backup of the same run does.
  ///
  /// - Throws: ``AccountClaims/Taken``; what ``run(_:knownHead:into:)`` throws.
  func run(
    _ account: ATIdentifier, knownHead: CID?, into destination: Destination, claims: AccountClaims
  ) async throws -> BackupReport {
    let file = claims.file()
    guard destination.isInBucket else {
      return try await run(account, knownHead, into: destination, claims, file)
    }
    var backup = self
    // To compare what is stored with its checksums is to fetch all of it.
    backup.options.checksHeld = false
    var races = 0
    while true {
      do {
        return try await backup.run(account, knownHead, into: destination, claims, file)
      } catch let error as StoreError where error.kind == .conditionFailed {
        races += 1
        guard races < Self.maximumRaces else { throw error }
        observer(.warning("another writer was faster; the backup goes on from what that one wrote"))
      }
    }
  }

  private func run(
    _ account: ATIdentifier, _ knownHead: CID?, into destination: Destination,
    _ claims: AccountClaims, _ file: AccountClaims.File
  ) async throws -> BackupReport {
    let begin = options.milliseconds()
    observer(.progress(BackupProgress(.resolving)))
    defer { file.release() }
    var known = try await KnownArchive(account, at: destination, claim: file)
    // The next account may go into the same file, and the thread that wrote this one may not have
    // let go of it yet.
    defer { known.target?.release() }
    if let base = known.base, let target = known.target, base.snapshot.commit == knownHead,
      base.snapshot.hasEverythingKnown, !options.keepsPrivateData, options.accepted.isEmpty,
      base.snapshot.hasFreshIdentity(at: Moment(options.now()), in: target.path),
      try !options.checksHeld || target.storedDamage().isNone
    {
      try claims.claim(base.snapshot.did, for: file)
      try await target.publish()
      base.markCurrent(at: options.now(), in: target.path)
      return .unchanged(
        base, at: target.name, milliseconds: options.milliseconds() - begin,
        missing: try base.ledger())
    }
    if let base = known.base, let target = known.target, let maximumAge = options.maximumAge,
      base.snapshot.privateData != nil || !options.keepsPrivateData,
      options.accepted.isEmpty,
      base.wasCurrent(within: maximumAge, before: Moment(options.now()), in: target.path),
      try !options.checksHeld || target.storedDamage().isNone
    {
      try claims.claim(base.snapshot.did, for: file)
      try await target.publish()
      return .unchanged(
        base, at: target.name, .recent, milliseconds: options.milliseconds() - begin,
        missing: try base.ledger())
    }
    let identity = try await AccountIdentity(
      account, base: known.base, in: known.target?.path, at: options.now(), network: network)
    try claims.claim(identity.did, for: file)
    if known.target == nil || known.base?.snapshot.did != identity.did {
      known = try await KnownArchive(identity, at: destination, opened: known.target, claim: file)
    }
    guard let target = known.target else { throw BackupError.notFound(account.text) }
    // Another process that makes the same archive is met before anything is fetched.
    try await target.claim()
    observer(.resolved(identity.did, handle: identity.handle, server: identity.server))
    let session = try await identity.session(options.session, for: account, network: network)
    return try await BackupWork(
      self, identity: identity, session: session, base: known.base, begin: begin
    ).run(into: target)
  }
}
