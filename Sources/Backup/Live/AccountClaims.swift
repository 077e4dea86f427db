internal import ATProtocol
internal import Synchronization
internal import SystemPackage

/// What the backups of one run have claimed, so that two names of one account are one backup.
///
/// 1. An account is claimed once in a run, by the first backup that finds out who it is.
/// 2. A file belongs to one backup at a time, and a backup that waits for a file has none.
final class AccountClaims: Sendable {
  /// The account is another backup's of this run.
  struct Taken: Error {
    let did: DID
  }

  /// One backup's claim on an archive.
  final class File: Sendable {
    private let claims: AccountClaims
    private let path = Mutex<FilePath?>(nil)
    private static let interval: Duration = .milliseconds(20)

    fileprivate init(_ claims: AccountClaims) { self.claims = claims }

    /// Claims an archive, and drops the claim before.
    ///
    /// - Returns: Whether it did; if not, another backup of this run has the archive.
    func take(_ new: FilePath) -> Bool {
      release()
      guard claims.files.withLock({ $0.insert(new).inserted }) else { return false }
      path.withLock { $0 = new }
      return true
    }

    /// Claims an archive once no other backup of this run has it, and drops the claim before.
    ///
    /// - Throws: `CancellationError`.
    func wait(for new: FilePath) async throws {
      while !take(new) { try await Task.sleep(for: Self.interval) }
    }

    /// Drops the claim.
    func release() {
      let old = path.withLock { $0.take() }
      if let old { claims.files.withLock { _ = $0.remove(old) } }
    }
  }

  private let accounts = Mutex<Set<DID>>([])
  private let files = Mutex<Set<FilePath>>([])

  /// Claims an account.
  ///
  /// - Throws: ``Taken`` if another backup of this run has claimed it.
  func claim(_ did: DID) throws {
    guard accounts.withLock({ $0.insert(did).inserted }) else { throw Taken(did: did) }
  }

  /// A new backup's claim on an archive: on none yet.
  func file() -> File { File(self) }
}
