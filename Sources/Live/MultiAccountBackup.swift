package import ATProtocol
internal import Files
package import HTTP
package import IPLD
internal import Synchronization
package import XRPC

/// Backs up many accounts, some at a time.
///
/// An account that fails does not hold up the others, and one whose servers are slow leaves its
/// place to another. Where the network does not wait for a host that allows no request
/// (`NetworkOptions.longestWait`), its accounts come again when it does, and while others wait to
/// be backed up no host has more places than its accounts' successes have justified.
package struct MultiAccountBackup: Sendable {
  /// An account to be backed up: its name, and its newest commit, if a server has said so already;
  /// an archive that has that commit is up to date without another request.
  package typealias Account = (account: ATIdentifier, head: CID?)

  /// The result for an account.
  package enum Outcome: Sendable {
    /// It is backed up.
    case success(BackupReport)
    /// It is not backed up, or not completely.
    case failure(any Error)
    /// A dry run: what a backup would do.
    case planned(BackupPlan)
    /// The account was already given under another name, and is backed up once.
    case duplicate(DID)
  }

  /// Called with what happens to each account: its backup begins; an event; its result.
  package typealias Observer = (
    began: @Sendable (ATIdentifier) -> Void,
    happened: @Sendable (ATIdentifier, BackupEvent) -> Void,
    ended: @Sendable (ATIdentifier, Outcome) -> Void
  )

  private let network: Network
  private let options: AccountBackup.Options
  private let jobs: Int
  private let observer: Observer
  /// How long the servers of an account may send next to nothing before it leaves its place to
  /// another.
  var patience: Duration = .seconds(5)

  /// A backup of many accounts.
  ///
  /// - Parameters:
  ///   - network: the way to their servers, whose budgets all of them share.
  ///   - options: how each is backed up.
  ///   - jobs: how many at a time.
  ///   - observer: called with what happens.
  package init(network: Network, options: AccountBackup.Options, jobs: Int, observer: Observer) {
    (self.network, self.options, self.jobs, self.observer) = (network, options, jobs, observer)
  }

  /// Backs up accounts as they come.
  ///
  /// - Parameters:
  ///   - accounts: which; asked for the next when there is a place for it.
  ///   - destination: where their archives go. Into one file they go one after the other.
  /// - Throws: what `accounts` throws, or `CancellationError`, after the running backups have
  ///   ended.
  package func run<Accounts: AsyncSequence & Sendable>(
    _ accounts: Accounts, into destination: AccountBackup.Destination
  ) async throws where Accounts.Element == Account {
    let isOneFile = destination.isOneArchive
    let places = Places(isOneFile ? 1 : jobs)
    let run = Run(destination: destination, canLeave: !isOneFile)
    let fault = try await withThrowingDiscardingTaskGroup { group -> (any Error)? in
      var list: Accounts.AsyncIterator? = accounts.makeAsyncIterator()
      var fault: (any Error)?
      while true {
        let seat = try await places.take()
        var next = run.shares.next(isLimited: true)
        if next == nil, list != nil, run.shares.count < Self.mostWaiting {
          do {
            let account = try await list?.next()
            if account == nil { list = nil }
            next = account.map { HostShares.Waiting(account: $0, host: "") }
          } catch {
            // A list that breaks off is no reason to break off those that are under way.
            (list, fault) = (nil, error)
          }
        }
        // What is left may have all places once nothing else makes use of them.
        var isLimited = true
        if next == nil, list == nil, places.taken == 1 {
          isLimited = false
          next = run.shares.next(isLimited: false)
        }
        guard let next else {
          seat.giveBack()
          if list == nil, run.shares.count == 0, run.underWay.withLock({ $0 == 0 }) { return fault }
          try await Task.sleep(for: Self.pause)
          continue
        }
        run.underWay.withLock { $0 += 1 }
        group.addTask { [isLimited] in
          defer {
            run.underWay.withLock { $0 -= 1 }
            seat.giveBack()
          }
          try await back(up: next, in: run, isLimited: isLimited, seat)
        }
      }
    }
    if let fault { throw fault }
  }

  /// How many seconds a request of several accounts on several hosts waits for its host.
  package static let longestWait = 5.0
  /// How many accounts wait for their hosts at most while others are taken from the list.
  private static let mostWaiting = 10_000
  /// How often accounts that wait are examined.
  private static let pause: Duration = .milliseconds(20)
  /// How often an account comes again whose host allows no request.
  private static let mostPostponements = 10

  /// What the accounts of a run share.
  private final class Run: Sendable {
    let destination: AccountBackup.Destination
    /// Whether one whose servers are slow may leave its place.
    let canLeave: Bool
    let locks = RunLocks()
    let shares = HostShares()
    let underWay = Mutex(0)

    init(destination: AccountBackup.Destination, canLeave: Bool) {
      (self.destination, self.canLeave) = (destination, canLeave)
    }
  }

  /// Backs up the named accounts in order, as places become free.
  ///
  /// - Throws: `CancellationError`, after the running backups have ended.
  package func run(_ accounts: [ATIdentifier], into destination: AccountBackup.Destination)
    async throws
  {
    let (list, continuation) = AsyncStream.makeStream(of: Account.self)
    for account in accounts { continuation.yield((account, nil)) }
    continuation.finish()
    try await run(list, into: destination)
    // A list that is cancelled ends early, and does not throw.
    try Task.checkCancellation()
  }

  private func back(
    up waiting: HostShares.Waiting, in run: Run, isLimited: Bool, _ seat: Places.Seat
  ) async throws {
    let account = waiting.account
    if waiting.host.isEmpty { observer.began(account.account) }
    let pace = StallDetector(patience: patience)
    let watch = run.canLeave ? pace.leaving(seat) : nil
    defer { watch?.cancel() }
    let located = Mutex<(did: DID, host: String)?>(nil)
    var options = options
    if network.options.longestWait != nil {
      options.located = { did, host in
        // Once, however often another writer is faster.
        guard located.withLock({ $0 == nil }) else { return }
        try run.shares.enter(host, isLimited: isLimited)
        located.withLock { $0 = (did, host) }
      }
    }
    let backup = AccountBackup(network: network, options: options) {
      [happened = observer.happened, account = account.account] event in
      pace.note(event)
      happened(account, event)
    }
    do {
      let outcome: Outcome =
        try await options.isDryRun
        ? .planned(backup.plan(account.account, into: run.destination, locks: run.locks))
        : .success(
          backup.run(
            account.account, knownHead: account.head, into: run.destination, locks: run.locks))
      located.withLock { $0.map { run.shares.leave($0.host, nil) } }
      observer.ended(account.account, outcome)
    } catch let full as HostShares.NoRoom {
      var again = HostShares.Waiting(account: account, host: full.host)
      again.postponements = waiting.postponements
      run.shares.putOff(again)
    } catch {
      let place = located.withLock { $0 }
      if let place { run.shares.leave(place.host, error) }
      if let (seconds, url) = HostFault.postponement(error),
        waiting.postponements < Self.mostPostponements, seconds <= HostShares.longestWait
      {
        if let place { run.locks.unclaim(place.did) }
        // Before the account's server is known, a directory may want to be asked later.
        let host = try place?.host ?? HTTPURL(url).origin
        run.shares.close(host, for: seconds)
        var again = HostShares.Waiting(account: account, host: host)
        again.postponements = waiting.postponements + 1
        return run.shares.putOff(again)
      }
      if let taken = error as? RunLocks.Taken {
        observer.ended(account.account, .duplicate(taken.did))
      } else {
        observer.ended(account.account, .failure(error))
        try Task.checkCancellation()
      }
    }
  }
}

/// Whether an account's servers send next to nothing, so that another account may have its place.
///
/// 1. An account is slow when it waits for its servers and they have sent less than `leastBytes`
///    for as long as there is patience.
/// 2. Local work on what has come is not the servers' fault, however long it takes.
package final class StallDetector: Sendable {
  private static let leastBytes: UInt64 = 128 << 10

  private let patience: Duration
  /// The stage, how many bytes of it had arrived when it was last seen to get on, and when that
  /// was.
  private let state = Mutex(
    (stage: BackupProgress.Stage.resolving, bytes: UInt64(0), seen: ContinuousClock.now))

  /// The pace of an account that begins now.
  package init(patience: Duration = .seconds(5)) { self.patience = patience }

  /// Has an account leave its place once it is slow; the task is to be cancelled when the account
  /// is done.
  package func leaving(_ seat: Places.Seat) -> Task<Void, any Error> {
    Task {
      try await isSlow()
      seat.leave()
    }
  }

  /// Records what happens to the account.
  package func note(_ event: BackupEvent) {
    guard case .progress(let progress) = event else { return }
    state.withLock { state in
      guard
        progress.stage != state.stage || progress.bytes < state.bytes
          || progress.bytes >= state.bytes + Self.leastBytes
      else { return }
      state = (progress.stage, progress.bytes, .now)
    }
  }

  /// Returns once the account is slow.
  ///
  /// - Throws: `CancellationError`.
  func isSlow() async throws {
    while true {
      let (stage, _, since) = state.withLock { $0 }
      let isWaiting = stage != .checking && stage != .committing
      let now = ContinuousClock.now
      let due = (isWaiting ? since : now) + patience
      if due <= now { return }
      try await Task.sleep(until: due)
    }
  }
}

/// How often progress is reported: pieces arrive by the thousand, and a person who watches needs a
/// few reports a second.
final class ProgressPace: Sendable {
  private static let interval: Duration = .milliseconds(50)

  private let said = Mutex<ContinuousClock.Instant>(.now)

  /// Whether it is time to report again; if so, the report counts as made.
  func isDue() -> Bool {
    said.withLock { said in
      let now = ContinuousClock.now
      guard said.duration(to: now) >= Self.interval else { return false }
      said = now
      return true
    }
  }
}

/// What the backups of one run hold, so that two names of one account are one backup.
///
/// 1. An account is claimed once in a run, by the first backup that learns its DID.
/// 2. An archive belongs to one backup at a time, and a backup that waits for one holds none.
final class RunLocks: Sendable {
  /// Another backup of this run has the account.
  struct Taken: Error { let did: DID }

  /// An archive that is locked, and its only place.
  typealias Lock = (archive: String, place: Places.Seat)

  private let accounts = Mutex<Set<DID>>([])
  /// The archives that are locked, each with how many backups have it or wait for it.
  private let archives = Mutex<[String: (places: Places, users: Int)]>([:])

  /// Claims an account.
  ///
  /// - Throws: ``Taken`` if a backup of this run has claimed it.
  func claim(_ did: DID) throws {
    guard accounts.withLock({ $0.insert(did).inserted }) else { throw Taken(did: did) }
  }

  /// Gives up the claim on an account that comes again later.
  func unclaim(_ did: DID) { accounts.withLock { _ = $0.remove(did) } }

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

/// All accounts that a server lists, page by page (`com.atproto.sync.listRepos`): those that it
/// serves, and to its operator all that it has.
package struct ServerAccounts: AsyncSequence, AsyncIteratorProtocol, Sendable {
  /// An account that the server serves.
  package typealias Element = MultiAccountBackup.Account

  private let isOperator: Bool
  private let inactive: @Sendable (DID, String) -> Void
  private let malformed: @Sendable ([String]) -> Void

  private var pages: Pages<ListPage<ListedRepo>>
  private var page: ArraySlice<ListedRepo> = []

  /// The longest page that the lexicon allows.
  private static let pageLength = 1000
  /// The word for an account that no server has any more.
  package static let deleted = "deleted"
  /// How many accounts are read at most: more than the whole network has.
  private static let maximumCount = 200_000_000

  /// The accounts of a server.
  ///
  /// - Parameters:
  ///   - client: what asks the server.
  ///   - isOperator: whether accounts that are deactivated or taken down are served, too.
  ///   - inactive: called with accounts that the server lists but does not serve, with its word for
  ///     that.
  ///   - malformed: called with entries without a valid DID, page by page: what stands in its
  ///     place.
  package init(
    _ client: XRPCClient, isOperator: Bool = false,
    inactive: @escaping @Sendable (DID, String) -> Void = { _, _ in },
    malformed: @escaping @Sendable ([String]) -> Void = { _ in }
  ) {
    (self.isOperator, self.inactive, self.malformed) = (isOperator, inactive, malformed)
    pages = client.pages(limit: Self.maximumCount, by: \.did) {
      .listRepos(limit: Self.pageLength, cursor: $0)
    }
  }

  /// The accounts, from the first on; a page is fetched when the one before has been read.
  package func makeAsyncIterator() -> ServerAccounts { self }

  /// The next account that the server serves.
  ///
  /// - Throws: as `nextPage()` does.
  package mutating func next() async throws -> MultiAccountBackup.Account? {
    while true {
      while let repo = page.popFirst() {
        if repo.active || isOperator && repo.status != Self.deleted {
          return (.did(repo.did), repo.head)
        }
        inactive(repo.did, repo.status ?? "inactive")
      }
      guard let next = try await nextPage() else { return nil }
      page = next[...]
    }
  }

  /// All accounts of the next page; nil after the last.
  ///
  /// - Throws: what the client throws; ``BrokenList``.
  package mutating func nextPage() async throws -> [ListedRepo]? {
    guard let page = try await pages.next() else { return nil }
    if !page.malformed.isEmpty { malformed(page.malformed) }
    return page.entries
  }
}
