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
  /// An account to be backed up.
  package struct Account: Sendable {
    /// What it is called.
    package let account: ATIdentifier
    /// Its newest commit, if a server has said so already: an archive that has it is up to date
    /// without another question.
    package let head: CID?

    /// An account.
    package init(_ account: ATIdentifier, head: CID? = nil) {
      self.account = account
      self.head = head
    }
  }

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

  /// Is told what happens to each account.
  package struct Observer: Sendable {
    /// An account's turn has come.
    package var began: @Sendable (ATIdentifier) -> Void
    /// Something happens.
    package var happened: @Sendable (ATIdentifier, BackupEvent) -> Void
    /// It is done.
    package var ended: @Sendable (ATIdentifier, Outcome) -> Void

    /// An observer.
    package init(
      began: @escaping @Sendable (ATIdentifier) -> Void,
      happened: @escaping @Sendable (ATIdentifier, BackupEvent) -> Void,
      ended: @escaping @Sendable (ATIdentifier, Outcome) -> Void
    ) {
      self.began = began
      self.happened = happened
      self.ended = ended
    }
  }

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
    self.network = network
    self.options = options
    self.jobs = jobs
    self.observer = observer
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
    let backup = AccountBackup(network: network, options: options) { [observer] event in
      pace.note(event)
      observer.happened(account.account, event)
    }
    do {
      if options.isDryRun {
        let plan = try await backup.plan(account.account, into: destination, locks: locks)
        observer.ended(account.account, .planned(plan))
        return
      }
      let report = try await backup.run(
        account.account, knownHead: account.head, into: destination, locks: locks)
      observer.ended(account.account, .success(report))
    } catch let taken as RunLocks.Taken {
      observer.ended(account.account, .duplicate(taken.did))
    } catch {
      observer.ended(account.account, .failure(error))
      try Task.checkCancellation()
    }
  }
}
