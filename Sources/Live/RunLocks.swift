internal import ATProtocol
internal import Synchronization
internal import XRPC

/// What the backups of one run hold, so that two names of one account are one backup.
///
/// 1. An account is claimed once in a run, by the first backup that learns its DID.
/// 2. An archive belongs to one backup at a time, and a backup that waits for one holds none.
final class RunLocks: Sendable {
  /// The account is another backup's of this run.
  struct Taken: Error {
    let did: DID
  }

  /// An archive that is locked, and its only place.
  typealias Lock = (archive: String, place: Places.Seat)

  private let accounts = Mutex<(claimed: [DID: Int], lastHolder: Int)>(([:], 0))
  /// The archives that are locked, each with how many backups have it or wait for it.
  private let archives = Mutex<[String: (places: Places, users: Int)]>([:])

  /// A number by which one backup's claims are told apart from others.
  func newHolder() -> Int {
    accounts.withLock { accounts in
      accounts.lastHolder += 1
      return accounts.lastHolder
    }
  }

  /// Claims an account.
  ///
  /// - Throws: ``Taken`` if another backup of this run has claimed it.
  func claim(_ did: DID, for holder: Int) throws {
    let first = accounts.withLock { accounts in
      let first = accounts.claimed[did] ?? holder
      accounts.claimed[did] = first
      return first
    }
    guard first == holder else { throw Taken(did: did) }
  }

  /// Locks an archive.
  ///
  /// - Parameters:
  ///   - archive: its name.
  ///   - waits: whether to wait until no other backup of this run has it.
  /// - Returns: nil if another one has it.
  /// - Throws: `CancellationError`.
  func lock(_ archive: String, waits: Bool) async throws -> Lock? {
    let places = archives.withLock { archives -> Places? in
      let (places, users) = archives[archive] ?? (Places(1), 0)
      guard waits || users == 0 else { return nil }
      archives[archive] = (places, users + 1)
      return places
    }
    do {
      guard let places else { return nil }
      return (archive, try await places.take())
    } catch {
      leave(archive)
      throw error
    }
  }

  /// Unlocks an archive.
  func unlock(_ lock: Lock) {
    lock.place.giveBack()
    leave(lock.archive)
  }

  private func leave(_ archive: String) {
    archives.withLock { archives in
      guard let (places, users) = archives[archive] else { return }
      archives[archive] = users > 1 ? (places, users - 1) : nil
    }
  }
}
