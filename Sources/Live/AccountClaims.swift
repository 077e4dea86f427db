internal import ATProtocol
internal import Synchronization

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
    private let place = Mutex<ArchivePlace?>(nil)
    private static let interval: Duration = .milliseconds(20)

    /// Which claim it is.
    fileprivate let number: Int

    fileprivate init(_ claims: AccountClaims, _ number: Int) {
      (self.claims, self.number) = (claims, number)
    }

    /// Claims an archive, and drops the claim before.
    ///
    /// - Returns: Whether it did; if not, another backup of this run has the archive.
    func take(_ new: ArchivePlace) -> Bool {
      release()
      guard claims.files.withLock({ $0.insert(new).inserted }) else { return false }
      place.withLock { $0 = new }
      return true
    }

    /// Claims an archive once no other backup of this run has it, and drops the claim before.
    ///
    /// - Throws: `CancellationError`.
    func wait(for new: ArchivePlace) async throws {
      while !take(new) { try await Task.sleep(for: Self.interval) }
    }

    /// Drops the claim.
    func release() {
      let old = place.withLock { $0.take() }
      if let old { claims.files.withLock { _ = $0.remove(old) } }
    }
  }

  private let accounts = Mutex<[DID: Int]>([:])
  private let fileCount = Mutex(0)
  private let files = Mutex<Set<ArchivePlace>>([])

  /// Claims an account.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - file: the claim of the backup on an archive, by which its claims are told apart.
  /// - Throws: ``Taken`` if another backup of this run has claimed it.
  func claim(_ did: DID, for file: File) throws {
    let holder = accounts.withLock { accounts in
      let holder = accounts[did] ?? file.number
      accounts[did] = holder
      return holder
    }
    guard holder == file.number else { throw Taken(did: did) }
  }

  /// A new backup's claim on an archive: on none yet.
  func file() -> File {
    File(
      self,
      fileCount.withLock { count in
        count += 1
        return count
      })
  }
}
