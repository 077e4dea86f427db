import ATProtocol
import HTTP
import IPLD
internal import Snapshots
import StandIn
import Synchronization
import SystemPackage
import TestSupport
import Testing
internal import Verification
import XRPC

@testable import Live

@Suite(.timeLimit(.minutes(15))) struct `A backup of many accounts` {
  private struct Broken: Error, Equatable {}

  /// Accounts, and perhaps an error after them.
  private struct List: AsyncSequence, Sendable {
    var accounts: [MultiAccountBackup.Account]
    var error: Broken?

    struct Iterator: AsyncIteratorProtocol {
      var rest: ArraySlice<MultiAccountBackup.Account>
      let error: Broken?

      mutating func next() async throws -> MultiAccountBackup.Account? {
        if let account = rest.popFirst() { return account }
        if let error { throw error }
        return nil
      }
    }

    func makeAsyncIterator() -> Iterator { Iterator(rest: accounts[...], error: error) }
  }

  private final class Log: Sendable {
    private struct State {
      var outcomes: [String: MultiAccountBackup.Outcome] = [:]
      var order: [String] = []
      var underWay = 0
      var most = 0
    }
    private let state = Mutex(State())
    /// Called with the number of those that have ended.
    private let whenEnded: @Sendable (Int) -> Void

    init(whenEnded: @escaping @Sendable (Int) -> Void = { _ in }) { self.whenEnded = whenEnded }

    var outcomes: [String: MultiAccountBackup.Outcome] { state.withLock { $0.outcomes } }
    /// Those that have ended, in that order.
    var order: [String] { state.withLock { $0.order } }
    /// How many were under way at a time, at most.
    var most: Int { state.withLock { $0.most } }
    var underWay: Int { state.withLock { $0.underWay } }

    var observer: MultiAccountBackup.Observer {
      (
        began: { [self] _ in
          state.withLock { state in
            state.underWay += 1
            state.most = max(state.most, state.underWay)
          }
        },
        happened: { _, _ in },
        ended: { [self] account, outcome in
          let count = state.withLock { state in
            state.underWay -= 1
            state.outcomes[account.text] = outcome
            state.order.append(account.text)
            return state.order.count
          }
          whenEnded(count)
        }
      )
    }

    func outcome(_ account: StandInAccount) -> BackupReport.Outcome? {
      if case .success(let report)? = outcomes[account.did] { report.outcome } else { nil }
    }
  }

  private let accounts: [StandInAccount]
  private let scene: AccountScene

  init() throws {
    accounts = try (0..<6).map { try StandInAccount("account\($0)", posts: 5, blobs: 3) }
    scene = try AccountScene(accounts)
  }

  private func list(_ error: Broken? = nil) throws -> List {
    List(
      accounts: try accounts.map {
        (try ATIdentifier($0.did), $0.head)
      },
      error: error)
  }

  private func run(
    _ list: List, into destination: AccountBackup.Destination, jobs: Int = 3,
    patience: Duration = .seconds(600), whenEnded: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws -> Log {
    let log = Log(whenEnded: whenEnded)
    var fleet = MultiAccountBackup(
      network: try scene.network(), options: scene.options, jobs: jobs, observer: log.observer)
    fleet.patience = patience
    try await fleet.run(list, into: destination)
    return log
  }

  @Test(arguments: [1, 3, 10])
  func `gives each its own archive, so many at a time`(jobs: Int) async throws {
    let log = try await run(list(), into: .folder(scene.archives), jobs: jobs)
    #expect(log.most <= jobs)
    for account in accounts { #expect(log.outcome(account) == .complete) }
    #expect(scene.folder.names().count == accounts.count)
    let before = scene.server.server.log.count
    let again = try await run(list(), into: .folder(scene.archives), jobs: jobs)
    for account in accounts { #expect(again.outcome(account) == .upToDate) }
    #expect(scene.server.server.log.count == before, "the list has said that nothing has changed")
  }

  /// The first account by each of its names, again and again.
  private func names(of account: StandInAccount) throws -> List {
    let names = [account.did, account.handle, account.handle.uppercased(), account.did]
    return List(accounts: try names.map { (try ATIdentifier($0), nil) })
  }

  @Test(arguments: [1, 4], [true, false])
  func `backs up an account once, however often and by whatever name it is given`(
    jobs: Int, intoFile: Bool
  ) async throws {
    let account = accounts[0]
    scene.server.behaviour.latency = 0.02
    let destination =
      intoFile
      ? AccountBackup.Destination.shared(scene.path("all.car.zst")) : .folder(scene.archives)
    for expected in [BackupReport.Outcome.complete, .upToDate] {
      let ended = Mutex<[String]>([])
      let observer = MultiAccountBackup.Observer(
        began: { _ in }, happened: { _, _ in },
        ended: { _, outcome in
          let word =
            switch outcome {
            case .success(let report): report.outcome.rawValue
            case .duplicate(let did): did.text == account.did ? "duplicate" : "another's"
            case .planned: "planned"
            case .failure(let error): "\(error)"
            }
          ended.withLock { $0.append(word) }
        })
      try await MultiAccountBackup(
        network: scene.network(), options: scene.options, jobs: jobs, observer: observer
      ).run(names(of: account), into: destination)
      #expect(
        ended.withLock { $0.sorted() }
          == [expected.rawValue, "duplicate", "duplicate", "duplicate"].sorted())
      #expect(scene.requestCount("getRepo") == 1)
    }
    #expect(scene.folder.names().count == 1)
  }

  @Test func `goes on with the others when one fails`() async throws {
    accounts[1].status = .takendown
    scene.server.play(FaultRule(.distorted(.cut(at: 0.5)), on: "getRepo", did: accounts[3].did))
    let lost = try #require(accounts[4].blobs.keys.first)
    accounts[4].lose(lost)
    let log = try await run(list(), into: .folder(scene.archives))
    #expect(log.outcomes.count == accounts.count)
    for number in [0, 2, 5] { #expect(log.outcome(accounts[number]) == .complete) }
    for number in [1, 3] { #expect(log.outcome(accounts[number]) == nil) }
    #expect(log.outcome(accounts[4]) == .incomplete)
    #expect(scene.folder.names().filter { !$0.hasPrefix(".") }.count == 4)
  }

  @Test func `goes on with the others while servers keep some waiting`() async throws {
    for account in accounts.prefix(2) {
      scene.server.play(FaultRule(.held, on: "getRepo", did: account.did))
    }
    let (server, others) = (scene.server, accounts.count - 2)
    let log = try await run(
      list(), into: .folder(scene.archives), jobs: 2, patience: .milliseconds(200)
    ) { count in
      if count == others { server.clearFaults() }
    }
    for account in accounts { #expect(log.outcome(account) == .complete) }
    #expect(Set(log.order.suffix(2)) == Set(accounts.prefix(2).map(\.did)))
  }

  @Test(arguments: [Fault.silent, .tooManyRequests(retryAfter: 3600)], [1, 4])
  func `has the accounts of good hosts backed up while one is bad`(fault: Fault, jobs: Int)
    async throws
  {
    let others = try (0..<20).map { try StandInAccount("other\($0)", posts: 1) }
    let bad = try StandInPDS(accounts: others)
    defer { bad.stop() }
    bad.play(FaultRule(fault))
    for account in others {
      account.endpoint = bad.url
      scene.server.add(account)
    }
    let log = Log()
    let network = try scene.network {
      $0.longestWait = MultiAccountBackup.longestWait
      $0.stallSeconds = 5
    }
    var fleet = MultiAccountBackup(
      network: network, options: scene.options, jobs: jobs, observer: log.observer)
    fleet.patience = .milliseconds(200)
    let list = try List(accounts: (others + accounts).map { (try ATIdentifier($0.did), nil) })
    let (task, start) = (
      Task { try await fleet.run(list, into: .folder(scene.archives)) }, ContinuousClock.now
    )
    while accounts.contains(where: { log.outcomes[$0.did] == nil }) {
      guard start.duration(to: .now) < .seconds(600) else { break }
      try await Task.sleep(for: .milliseconds(20))
    }
    for account in accounts { #expect(log.outcome(account) == .complete) }
    // A host that names a time is not waited for; of a silent one no account ends before its time.
    if fault == .silent { task.cancel() }
    do { try await task.value } catch is CancellationError {}
    for account in others { #expect(log.outcome(account) == nil) }
    if fault != .silent {
      for account in others { #expect(log.outcomes[account.did] != nil) }
      let count = bad.server.log.count
      #expect(count <= 3, "\(count) requests of a host that refuses")
    }
  }

  @Test func `comes again when a host that names a time allows it`() async throws {
    for account in accounts.prefix(2) {
      scene.server.play(
        FaultRule(.tooManyRequests(retryAfter: 6), on: "getRepo", did: account.did, times: 1))
    }
    let log = Log()
    let network = try scene.network { $0.longestWait = MultiAccountBackup.longestWait }
    let fleet = MultiAccountBackup(
      network: network, options: scene.options, jobs: 2, observer: log.observer)
    try await fleet.run(try list(), into: .folder(scene.archives))
    for account in accounts { #expect(log.outcome(account) == .complete) }
  }

  @Test func `has one archive for all, one account after the other`() async throws {
    let path = scene.path("all.car.zst")
    let log = try await run(list(), into: .shared(path), jobs: 8)
    #expect(log.most == 1)
    for account in accounts { #expect(log.outcome(account) == .complete) }
    #expect(try scene.verdict(path) == .intact)
  }

  @Test func `brings those under way to their end when the list breaks off`() async throws {
    scene.server.behaviour.latency = 0.02
    let log = Log()
    let fleet = MultiAccountBackup(
      network: try scene.network(), options: scene.options, jobs: 8, observer: log.observer)
    let list = try list(Broken())
    await #expect(throws: Broken()) { try await fleet.run(list, into: .folder(scene.archives)) }
    for account in accounts { #expect(log.outcome(account) == .complete) }
  }

  @Test func `ends soon when it is cancelled, and with nothing under way`() async throws {
    scene.server.behaviour.latency = 0.05
    let log = Log()
    let fleet = MultiAccountBackup(
      network: try scene.network(), options: scene.options, jobs: 2, observer: log.observer)
    let (list, destination) = (try list(), AccountBackup.Destination.folder(scene.archives))
    let task = Task { try await fleet.run(list, into: destination) }
    while scene.requestCount("getBlob") == 0 { try await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(log.underWay == 0)
    #expect(log.outcomes.count < accounts.count)
  }
}

@Suite(.timeLimit(.minutes(15))) struct `A backup whose account or server is not as it was` {
  @Test func `goes by what the archive knows while the directory is away, and says so`()
    async throws
  {
    let account = try StandInAccount("somebody", posts: 3)
    let scene = try AccountScene([account])
    try await scene.backUp(account, into: "a.car.zst")
    try account.commit([account.post("3zzzzzzzzzzzz", "more")])
    let backup = try scene.backup {
      // Nobody listens there.
      $0.plcDirectory = "http://127.0.0.1:1"
      $0.attempts = 1
    }
    let report = try await backup.run(
      ATIdentifier(account.did), into: .file(scene.path("a.car.zst")))
    #expect(report.snapshot.commit == account.head)
    #expect(report.snapshot.handle?.text == account.handle)
    let warning = try #require(report.warnings.first { $0.contains("DID document") })
    #expect(warning.contains("127.0.0.1"), "\(warning)")
    #expect(!warning.contains("error)"), "\(warning)")
  }

  @Test func `does not keep a handle that leads to somebody else by now`() async throws {
    let account = try StandInAccount("somebody", posts: 3)
    let scene = try AccountScene([account])
    #expect(try await scene.backUp(account).snapshot.handle?.text == account.handle)
    let taken = account.handle
    account.handle = "other.example.com"
    let thief = try StandInAccount("thief", handle: taken)
    scene.server.add(thief)
    try account.commit([account.post("3zzzzzzzzzzzz", "more")])
    #expect(try await scene.backUp(account).snapshot.handle?.text == "other.example.com")
  }

  @Test
  func
    `fills what earlier servers still have, and keeps to what the account's own says of the rest`()
    async throws
  {
    let account = try StandInAccount("mover", posts: 4, blobs: 4)
    let all = account.blobs.values.sorted { "\($0.cid)" < "\($1.cid)" }
    let scene = try AccountScene([account])
    for blob in all.prefix(2) { account.lose(blob.cid) }
    let path = scene.path("a.car.zst")
    #expect(try await scene.backUp(account, into: "a.car.zst").outcome == .incomplete)
    // It moves to a server that does not have them either.
    let old = scene.server
    let new = try StandInPDS(accounts: [account])
    account.endpoint = new.url
    let ended = Ended()
    try await scene.backup().fill(path) { ended.add($0, $1) }
    let report = try #require(ended.report)
    #expect(report.outcome == .incomplete)
    #expect(report.missing.map(\.reason) == [.notFound, .notFound])
    #expect(report.missing.allSatisfy { $0.firstTried != $0.lastTried })
    #expect(new.blobRequests.values.reduce(0, +) == 2, "the new server is asked")
    #expect(report.snapshot.pds == old.url, "nothing is written where no blob has come")
    // Each is named once, however many servers were asked.
    let named = scene.events.count { if case .missing = $0 { true } else { false } }
    #expect(named == 4)
    old.stop()
    try await scene.backup {
      $0.plcDirectory = new.url; $0.handleResolver = new.url
    }.fill(path) {
      ended.add($0, $1)
    }
    let last = try #require(ended.report)
    #expect(
      last.missing.map(\.reason) == [.notFound, .notFound],
      "that the old one is gone says nothing of them")
    for blob in all.prefix(2) { account.upload(blob) }
    try await scene.backup {
      $0.plcDirectory = new.url; $0.handleResolver = new.url
    }.fill(path) {
      ended.add($0, $1)
    }
    #expect(ended.report?.outcome == .complete)
    #expect(ended.report?.snapshot.pds == new.url)
    #expect(try scene.verdict(path) == .intact)
  }

  @Test func `fills each account of an archive, though one of them fails`() async throws {
    let accounts = try (0..<3).map { try StandInAccount("account\($0)", posts: 2, blobs: 2) }
    let scene = try AccountScene(accounts)
    let lost = accounts.map { $0.blobs.values.sorted { "\($0.cid)" < "\($1.cid)" }[0] }
    for (account, blob) in zip(accounts, lost) {
      account.lose(blob.cid)
      try await scene.backUp(account, into: "all.car.zst")
    }
    for (account, blob) in zip(accounts, lost) { account.upload(blob) }
    scene.server.setAuditLog(#"{"message":"no log"}"#, for: accounts[1].did)
    let ended = Ended()
    try await scene.backup().fill(scene.path("all.car.zst")) { ended.add($0, $1) }
    #expect(ended.succeeded == [accounts[0].did, accounts[2].did])
    #expect(ended.failed == [accounts[1].did])
  }

  private final class Ended: Sendable {
    private let state = Mutex<[(DID, MultiAccountBackup.Outcome)]>([])

    func add(_ did: DID, _ outcome: MultiAccountBackup.Outcome) {
      state.withLock { $0.append((did, outcome)) }
    }

    var report: BackupReport? {
      state.withLock { state in
        if case .success(let report)? = state.last?.1 { report } else { nil }
      }
    }
    var succeeded: Set<String> {
      state.withLock { state in
        Set(state.compactMap { if case .success = $1 { $0.text } else { nil } })
      }
    }
    var failed: Set<String> {
      state.withLock { state in
        Set(state.compactMap { if case .failure = $1 { $0.text } else { nil } })
      }
    }
  }
}
