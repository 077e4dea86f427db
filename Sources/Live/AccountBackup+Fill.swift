package import ATProtocol
internal import Archive
internal import Files
internal import Snapshots
package import SystemPackage
internal import XRPC

/// Requests once more the blobs that an archive lacks, or that are damaged in it: from the
/// account's server, and then from every server where the account was before.
extension AccountBackup {
  /// Tries to complete the newest snapshot of each account in an archive.
  ///
  /// One account that fails does not keep the others from being tried.
  ///
  /// - Parameters:
  ///   - path: the archive.
  ///   - ended: called with the result for each account; one that lacked nothing is up to date.
  /// - Throws: `ArchiveError` and `SnapshotError` for an archive that cannot be opened or read;
  ///   `CancellationError`.
  package func fill(_ path: FilePath, ended: (DID, MultiAccountBackup.Outcome) -> Void) async throws
  {
    guard AtomicFile.isTaken(path) else {
      throw BackupError.system("read \(path)", Errno.noSuchFileOrDirectory.rawValue)
    }
    let target = try await DestinationArchive.open(path.string)
    // The thread that wrote to it may not have released it yet when the next task wants to.
    defer { target.release() }
    guard let reader = target.reader else { throw SnapshotError.noSnapshot }
    guard reader.generation.number > 0 else { throw ArchiveError(.noFooter) }
    guard reader.generation.head != nil else { throw SnapshotError.noSnapshot }
    for snapshots in try Self.history(of: reader) {
      guard let newest = snapshots.first else { continue }
      let did = newest.snapshot.did
      do {
        let report = try await fill(newest, servers: snapshots.map(\.snapshot.pds), target)
        ended(did, .success(report))
      } catch {
        ended(did, .failure(error))
        try Task.checkCancellation()
      }
    }
  }

  /// The snapshots of each account, the newest first.
  private static func history(of reader: ArchiveReader) throws -> [[ArchivedSnapshot]] {
    var accounts: [DID: [ArchivedSnapshot]] = [:]
    var order: [DID] = []
    _ = try ArchivedSnapshot.newest(from: reader.generation.head?.cid, in: reader) { snapshot in
      let did = snapshot.snapshot.did
      if accounts[did] == nil { order.append(did) }
      accounts[did, default: []].append(snapshot)
      return false
    }
    return order.compactMap { accounts[$0] }
  }

  private func fill(
    _ base: ArchivedSnapshot, servers known: [String?], _ target: DestinationArchive
  ) async throws -> BackupReport {
    let begin = options.milliseconds()
    guard try !base.snapshot.blobs.isSettled || options.checksHeld && !target.storedDamage().isNone
    else {
      try await target.publish()
      return .unchanged(base, at: target.name, milliseconds: 0, missing: try base.ledger().missing)
    }
    let identity = try await AccountIdentity(
      .did(base.snapshot.did), base: base, in: target.path, at: options.now(),
      network: network, mayBeGone: true)
    let log = try base.plcLog()
    var earlier: [String] = []
    for server in known.compactMap({ $0 }) + Self.servers(in: log, of: identity.did)
    where server != identity.server && !earlier.contains(server) { earlier.append(server) }
    // The session is the first server's alone.
    return try await BackupRun(
      self, identity, .did(identity.did), target, base, begin: begin,
      earlierServers: earlier.map { XRPCClient(service: $0, network: network) }
    ).run()
  }

  /// The servers that an account's history in the PLC directory names, the last first.
  private static func servers(in log: [UInt8]?, of did: DID) -> [String] {
    guard let log else { return [] }
    do {
      return try PLCLog(log.span, of: did).servers.reversed().map(\.text)
    } catch {
      // A log is kept as it was received; one that cannot be read names no server.
      return []
    }
  }
}
