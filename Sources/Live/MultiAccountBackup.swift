package import ATProtocol
internal import Archive
package import IPLD
internal import SystemPackage
package import XRPC

/// Backs up many accounts, some at a time.
///
/// One that fails does not keep the others from being backed up, and one whose servers are slow
/// leaves its place to another.
package struct MultiAccountBackup: Sendable {
  /// An account to be backed up: what it is called, and its newest commit, if a server has said so
  /// already; an archive that has it is up to date without another question.
  package typealias Account = (account: ATIdentifier, head: CID?)

  /// What came of an account.
  package enum Outcome: Sendable {
    /// It is backed up.
    case success(BackupReport)
    /// It is not, or not to the end.
    case failure(any Error)
    /// It was a dry run: what a backup would do.
    case planned(BackupPlan)
    /// The account was given by another name before, and is backed up once.
    case duplicate(DID)
  }

  /// Is called with what happens to each account: its turn has come; something happens; it is done.
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
  ///   - observer: is told what happens.
  package init(
    network: Network, options: AccountBackup.Options, jobs: Int, observer: Observer
  ) {
    (self.network, self.options, self.jobs, self.observer) = (network, options, jobs, observer)
  }

  /// Backs up accounts as they come.
  ///
  /// - Parameters:
  ///   - accounts: which; asked for the next when there is a place for it.
  ///   - destination: where their archives go. Into one file they go one after the other.
  /// - Throws: what `accounts` throws, or `CancellationError`, after those under way have ended.
  package func run<Accounts: AsyncSequence & Sendable>(
    _ accounts: Accounts, into destination: AccountBackup.Destination
  ) async throws where Accounts.Element == Account {
    let isOneFile = destination.isOneArchive
    let places = Places(isOneFile ? 1 : jobs)
    let locks = RunLocks()
    let fault = try await withThrowingDiscardingTaskGroup { group -> (any Error)? in
      var list = accounts.makeAsyncIterator()
      while true {
        let seat = try await places.take()
        do {
          guard let account = try await list.next() else { return nil }
          group.addTask {
            defer { seat.giveBack() }
            try await back(
              up: account, into: destination, locks, mayLeave: isOneFile ? nil : seat)
          }
        } catch {
          // A list that breaks off is no reason to break off those that are under way.
          return error
        }
      }
    }
    if let fault { throw fault }
  }

  private func back(
    up account: Account, into destination: AccountBackup.Destination, _ locks: RunLocks,
    mayLeave seat: Places.Seat?
  ) async throws {
    observer.began(account.account)
    let pace = StallDetector(patience: patience)
    let watch = seat.map { seat in
      Task {
        try await pace.isSlow()
        seat.leave()
      }
    }
    defer { watch?.cancel() }
    let backup = AccountBackup(network: network, options: options) {
      [happened = observer.happened, account = account.account] event in
      pace.note(event)
      happened(account, event)
    }
    let outcome: Outcome
    do {
      outcome =
        try await options.isDryRun
        ? .planned(backup.plan(account.account, into: destination, locks: locks))
        : .success(
          backup.run(
            account.account, knownHead: account.head, into: destination, locks: locks))
    } catch let taken as RunLocks.Taken {
      outcome = .duplicate(taken.did)
    } catch {
      observer.ended(account.account, .failure(error))
      return try Task.checkCancellation()
    }
    observer.ended(account.account, outcome)
  }
}
