import ATProtocol
import Foundation
import IPLD
import Synchronization

/// A personal data server on loopback, and the DID directory, the handles' hosts and the DNS
/// resolver that go with it.
///
/// ```swift
/// let account = try StandInAccount("alice")
/// let server = try StandInPDS(accounts: [account], behaviour: .cocoon)
/// ```
///
/// One port answers as all of them: XRPC under `/xrpc/`, the directory under `/did:plc:…`, handles
/// under `/.well-known/atproto-did`, did:web under `/.well-known/did.json`, DNS over HTTPS under
/// `/dns-query`. What is not asked for by a test is as in ``Behaviour``; what goes wrong is said by
/// ``play(_:)``, and by ``randomFaults``.
package final class StandInPDS: Sendable {
  struct State {
    var accounts: [String: StandInAccount] = [:]
    var behaviour: Behaviour
    var rules: [FaultRule] = []
    var random: RandomFaults?
    /// How often each thing has been requested, which decides about faults at random.
    var attempts: [String: UInt64] = [:]
    var sessions = Sessions()
    var window = RateWindow()
    /// DID documents, TXT records and well-known files that are given instead of those that follow
    /// from the accounts.
    var documents: [String: String] = [:]
    var auditLogs: [String: String] = [:]
    var textRecords: [String: [String]] = [:]
    var wellKnown: [String: String] = [:]
    var directory: StandInDirectory?
    var uploads = RateWindow()
    var accountsMade = RateWindow()
    var invitesMade = 0
    var usedInvites: Set<String> = []
    var createdCount = 0
    /// Accounts that it was stopped while it made: it does not know them, and makes no other.
    var halfMade: Set<String> = []
  }

  private let state: Mutex<State>
  private let running = Mutex<LoopbackServer?>(nil)

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - port: where it listens; 0 for a port that is free.
  ///   - settled: called with each exchange when it is complete.
  package init(
    port: UInt16 = 0, accounts: [StandInAccount] = [], behaviour: Behaviour = Behaviour(),
    settled: @escaping @Sendable (LoopbackExchange) -> Void = { _ in }
  ) throws {
    state = Mutex(State(behaviour: behaviour))
    for account in accounts { add(account) }
    let server = try LoopbackServer(port: port, settled: settled) { [weak self] in
      try self?.answer($0, $1)
    }
    running.withLock { $0 = server }
  }

  /// What it runs on, and its log.
  package var server: LoopbackServer { running.withLock { $0! } }
  /// Its address, without a slash at the end.
  package var url: String { server.url }
  /// Stops it.
  package func stop() { server.stop() }

  /// How it behaves, from the next request on.
  package var behaviour: Behaviour {
    get { update { $0.behaviour } }
    set { update { $0.behaviour = newValue } }
  }

  /// Faults that befall answers at random.
  package var randomFaults: RandomFaults? {
    get { update { $0.random } }
    set { update { $0.random = newValue } }
  }

  /// Has a fault befall answers, after those that were asked for before.
  package func play(_ rule: FaultRule) { update { $0.rules.append(rule) } }

  /// Has no more faults.
  package func clearFaults() {
    update {
      $0.rules.removeAll()
      $0.random = nil
    }
  }

  /// The directory that it asks about DIDs, and hands operations to; without one it takes no
  /// accounts.
  package var directory: StandInDirectory? {
    get { update { $0.directory } }
    set { update { $0.directory = newValue } }
  }

  /// How many accounts it was asked for and has made.
  package var createdCount: Int { update { $0.createdCount } }

  /// Has what is left of an account that it was stopped while it made.
  package func leaveHalfMade(_ did: String) { update { _ = $0.halfMade.insert(did) } }

  /// Takes in an account.
  package func add(_ account: StandInAccount) {
    update { $0.accounts[account.did] = account }
  }

  /// The accounts, by their DIDs.
  package var accounts: [StandInAccount] {
    update { $0.accounts.values.sorted { $0.did < $1.did } }
  }

  /// Gives this as a DID's document, whatever it is.
  package func setDocument(_ document: String?, for did: String) {
    update { $0.documents[did] = document }
  }

  /// The DID document that is given of an account, unless another was set.
  package func documentText(of account: StandInAccount) -> String { document(of: account).json() }

  /// Gives this as a DID's PLC log, whatever it is.
  package func setAuditLog(_ log: String?, for did: String) { update { $0.auditLogs[did] = log } }

  /// Has document and PLC log of an account name another key from a time on, as after a move; what
  /// signs its commits stays.
  package func nameKey(_ key: SigningKey, for account: StandInAccount, at time: String) throws {
    try account.name(key, at: time)
    let document = document(of: account).json()
    setDocument(
      document.replacingOccurrences(of: account.key.multikey, with: key.multikey),
      for: account.did)
  }

  /// Gives these as the texts of a handle's `_atproto` name in the DNS; none for a name that does
  /// not exist.
  package func setTextRecords(_ texts: [String]?, for handle: String) {
    update { $0.textRecords[handle] = texts }
  }

  /// Gives this as a handle's well-known file.
  package func setWellKnown(_ content: String?, for handle: String) {
    update { $0.wellKnown[handle] = content }
  }

  /// How often each blob was requested.
  package var blobRequests: [String: Int] {
    var counts: [String: Int] = [:]
    for exchange in server.log where exchange.path.hasSuffix("getBlob") {
      counts[exchange.parameter("cid") ?? "", default: 0] += 1
    }
    return counts
  }

  /// How often a client got all of each blob.
  package var blobDeliveries: [String: Int] {
    var counts: [String: Int] = [:]
    for exchange in server.log where exchange.path.hasSuffix("getBlob") && exchange.isDelivered {
      counts[exchange.parameter("cid") ?? "", default: 0] += 1
    }
    return counts
  }

  /// Reads or changes the state, exclusively.
  func update<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
    try state.withLock { state throws in try body(&state) }
  }

  // MARK: Answering

  private func answer(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    if request.path.hasPrefix("/control/") { return try answerControl(request, response) }
    let behaviour = behaviour
    var call = Call(request: request, response: response, behaviour: behaviour, fault: nil)
    if behaviour.latency > 0 { try response.pause(behaviour.latency) }
    if request.path.hasPrefix("/xrpc/"), let limit = behaviour.rateLimit {
      guard update({ $0.window.admit(limit, now: Self.now, response) }) else {
        return try call.refuse(429, "RateLimitExceeded", "Rate Limit Exceeded")
      }
    }
    call.fault = fault(for: request)
    if let fault = call.fault {
      response.fault = "\(fault)"
      while fault == .held, update({ !$0.rules.isEmpty }) { try response.pause(0.02) }
      if try fault.answer(call) { return }
    }
    if request.path.hasPrefix("/xrpc/") {
      let method = String(request.path.dropFirst("/xrpc/".count))
      do {
        try answer(method, call)
      } catch let refusal as Call.Refused {
        try call.send(refusal)
      }
    } else {
      try answerIdentity(call)
    }
  }

  private func answer(_ method: String, _ call: Call) throws {
    guard !call.behaviour.lacks.contains(method) else {
      return try call.refuse(501, "MethodNotImplemented", "Method Not Implemented")
    }
    switch method {
    case "_health": try call.send(["version": .string("stand-in 1")])
    case "com.atproto.sync.getLatestCommit": try getLatestCommit(call)
    case "com.atproto.sync.getRepoStatus": try getRepoStatus(call)
    case "com.atproto.sync.getRepo": try getRepo(call)
    case "com.atproto.sync.getRecord": try getRecord(call)
    case "com.atproto.sync.getBlocks": try getBlocks(call)
    case "com.atproto.sync.listBlobs": try listBlobs(call)
    case "com.atproto.sync.getBlob": try getBlob(call)
    case "com.atproto.sync.listRepos": try listRepos(call)
    case "com.atproto.repo.describeRepo": try describeRepo(call)
    case "com.atproto.identity.resolveHandle": try resolveHandle(call)
    case "com.atproto.server.describeServer": try describeServer(call)
    case "com.atproto.server.createSession": try createSession(call)
    case "com.atproto.server.refreshSession": try refreshSession(call)
    case "com.atproto.server.getSession": try getSession(call)
    case "com.atproto.server.createInviteCode", "com.atproto.admin.updateAccountPassword":
      try answerOperator(method, call)
    case _ where Self.writingMethods[method] != nil: try write(method, call)
    case _ where Self.privateMethods.contains { method.hasPrefix($0) }:
      try answerOwner(method, call)
    default: try call.refuse(501, "MethodNotImplemented", "Method Not Implemented")
    }
  }

  /// The time in seconds since 1970.
  static var now: Double { Date().timeIntervalSince1970 }

  // MARK: Accounts

  /// The account that a request names.
  ///
  /// - Throws: `Call.Refused` if there is none, or if it is not for everybody's eyes.
  func account(_ call: Call, parameter: String = "did") throws -> StandInAccount {
    guard let name = call.request.parameter(parameter), !name.isEmpty else {
      throw Call.Refused(
        400, "InvalidRequest", "Error: Params must have the property \"\(parameter)\"")
    }
    let owner = try authenticated(call)
    guard let account = find(name), account.status != .deleted else {
      throw Call.Refused(
        call.behaviour.unknownAccount, 400, "RepoNotFound", "Could not find repo for DID: \(name)")
    }
    guard account.status == .active || owner == account.did || isOperator(call) else {
      let error =
        switch account.status {
        case .deactivated: "RepoDeactivated"
        case .suspended: "RepoSuspended"
        default: "RepoTakendown"
        }
      throw Call.Refused(400, error, "Repo has been \(account.status.rawValue): \(name)")
    }
    return account
  }

  /// The account with this DID or handle.
  func find(_ name: String) -> StandInAccount? {
    update { state in
      state.accounts[name] ?? state.accounts.values.first { $0.handle == name }
    }
  }
}
