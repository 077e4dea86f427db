internal import ATProtocol
internal import Archive
internal import Files
package import HTTP
internal import IPLD
internal import Snapshots
internal import Synchronization
internal import XRPC

/// A server that an account is restored to, asked as its owner.
///
/// It waits for limits that a server has for one method, such as the reference server's thousand
/// blobs a day, for as long as that takes.
struct DestinationServer: Sendable {
  let client: XRPCClient
  let did: DID
  let tell: @Sendable (RestoreEvent) -> Void

  /// The longest that one call waits for a limit in all, in seconds: a day, and some for clocks
  /// that differ.
  private static let longestWait = 26.0 * 3600
  /// How long to wait where a server does not say.
  private static let assumedWait = 60.0

  /// The server on which an account is, logged in as its owner.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - network: the way to servers.
  ///   - login: the account's password, or one for apps, and the code that came by mail.
  ///   - asksForCode: asks for that code if the server wants one.
  ///   - tell: called with what happens.
  /// - Throws: ``BackupError/noServer(_:)``; what servers throw.
  static func home(
    of did: DID, _ network: Network, _ login: OwnLogin,
    asking asksForCode: CodeQuestion, tell: @escaping @Sendable (RestoreEvent) -> Void
  ) async throws -> DestinationServer {
    let identity = try await IdentityResolver(network: network).resolve(
      .did(did), confirmingHandle: false)
    guard let url = identity.pds else { throw BackupError.noServer(did.text) }
    let server = try await loggedIn(
      at: url, network, as: did.text, of: did, or: identity.document.handle, login,
      asking: asksForCode, tell: tell)
    return DestinationServer(client: server.client, did: did, tell: tell)
  }

  /// The new server, which has the account, logged in on as its owner.
  ///
  /// - Throws: ``RestoreError/otherPassword(_:)``; what servers throw.
  static func existing(
    of did: DID, or handle: Handle?, _ options: RestoreOptions, _ network: Network,
    tell: @escaping @Sendable (RestoreEvent) -> Void = { _ in }
  ) async throws -> DestinationServer {
    do {
      let server = try await loggedIn(
        at: options.target, network, as: did.text, of: did, or: handle, (options.password, nil),
        asking: options.asksForCode)
      return DestinationServer(client: server.client, did: did, tell: tell)
    } catch let error as XRPCError
      where [400, 401].contains(error.status) && error.name != "AuthFactorTokenRequired"
    {
      throw RestoreError.otherPassword(options.target)
    }
  }

  /// A server, logged in on with the code that came by mail if it wants one.
  ///
  /// The reference server lower-cases names, and so does not know a `did:web` with a port: that
  /// account is requested by its handle.
  ///
  /// - Throws: `XRPCError` if the server refuses; `OtherSession`; `TransportError`.
  static func loggedIn(
    at service: String, _ network: Network, as identifier: String, of did: DID?,
    or handle: Handle? = nil, _ login: OwnLogin,
    asking ask: CodeQuestion, tell: @escaping @Sendable (RestoreEvent) -> Void = { _ in }
  ) async throws -> DestinationServer {
    func begun(_ code: Secret?) async throws -> DestinationServer {
      let session = Session(
        service: service, network: network, identifier: identifier, of: did,
        password: login.password,
        authFactorToken: code, allowTakendown: true)
      let did = try await session.account()
      let client = XRPCClient(service: service, network: network, session: session)
      return DestinationServer(client: client, did: did, tell: tell)
    }
    do {
      return try await begun(login.code)
    } catch let error as XRPCError
      where error.name == "AuthFactorTokenRequired"
    {
      guard login.code == nil, let asked = ask(service, "logging in") else { throw error }
      return try await begun(asked)
    } catch let error as XRPCError
      where error.status == 401 && identifier.contains("%") && handle != nil
    {
      return try await loggedIn(
        at: service, network, as: handle?.text ?? "", of: did, login, asking: ask, tell: tell)
    }
  }

  /// Calls a method.
  ///
  /// - Throws: what the client throws; `CancellationError`.
  func call<Output>(
    _ query: XRPCQuery<Output>, _ gate: WaitGate = WaitGate()
  ) async throws -> Output {
    try await waiting(gate) { try await client.call(query) }
  }

  /// Calls a method that answers with nothing.
  ///
  /// - Throws: what the client throws; `CancellationError`.
  func perform(_ call: XRPCCall, attempts: Int? = nil) async throws {
    try await waiting { try await client.perform(call, attempts: attempts) }
  }

  /// Sends a blob of an archive.
  ///
  /// - Parameters:
  ///   - blob: which.
  ///   - mimeType: the media type that records name.
  ///   - archived: where it is.
  ///   - isAccepted: whether its loss is accepted.
  ///   - limit: how long a blob may be, in bytes.
  ///   - gate: the gate for which all transfers of blobs wait.
  /// - Returns: How many bytes were sent, or why the server does not have it now.
  /// - Throws: what the client throws; `ArchiveError` if the archive cannot be read.
  func send(
    _ blob: CID, as mimeType: String?, from archived: ArchivedSnapshot, isAccepted: Bool = false,
    limit: UInt64? = nil, _ gate: WaitGate = WaitGate()
  ) async throws -> Result<UInt64, UnrestoredBlob.Reason> {
    let state = archived.state(of: blob)
    if let reason = UnrestoredBlob.Reason(state, isAccepted: isAccepted, limit: limit) {
      return .failure(reason)
    }
    do {
      let body = try await RequestBody.blob(blob, state, in: archived)
      let type = RestoreSource.mediaType(mimeType)
      let named = try await call(.uploadBlob(body, contentType: type), gate)
      return named == blob ? .success(body.byteCount) : .failure(.otherCID(named))
    } catch let error as ArchiveError where error.faultKind == .damage {
      return .failure(.damaged("\(error)"))
    } catch let fault as AnswerFault {
      return .failure(.refused("its answer is malformed (\(fault.what))"))
    }
  }

  /// Repeats a call that the server has refused for exceeding a limit, when that allows it.
  private func waiting<Value>(
    _ gate: WaitGate = WaitGate(), _ body: () async throws -> Value
  ) async throws -> Value {
    var waited = 0.0
    while true {
      try await gate.pass()
      do {
        return try await body()
      } catch let error as XRPCError where error.status == 429 && waited < Self.longestWait {
        let wait = max(1, error.wait ?? Self.assumedWait)
        waited += wait
        if gate.close(for: wait) {
          tell(
            .waiting(
              seconds: wait,
              why: "\(error.host) allows no more calls of \(error.endpoint) until then"))
        }
      }
    }
  }

  /// A time before which nothing is sent, for all that wait for the same limit.
  final class WaitGate: Sendable {
    private let opens = Mutex<ContinuousClock.Instant?>(nil)

    /// Waits until the gate is open.
    func pass() async throws {
      while let moment = opens.withLock({ $0 }), moment > .now {
        try await Task.sleep(until: moment, clock: .continuous)
      }
    }

    /// Closes it for this many seconds; returns whether it was open.
    func close(for seconds: Double) -> Bool {
      opens.withLock { moment in
        let end = ContinuousClock.now + .seconds(seconds)
        defer { moment = max(moment ?? end, end) }
        return moment.map { $0 <= .now } ?? true
      }
    }
  }
}

/// An account's password, or one for apps, and the code that came by mail for logging in.
package typealias OwnLogin = (password: Secret, code: Secret?)

/// Asks for a code that was sent by mail: by which server, and what for; nil if that is not
/// possible.
package typealias CodeQuestion = (_ server: String, _ purpose: String) -> Secret?

extension RequestBody {
  /// A blob up to this length is held in memory while it is sent.
  static let maximumInMemory: UInt64 = 512 << 10

  /// A blob of an archive, to be sent: all of it has been compared with its CID.
  ///
  /// - Throws: `ArchiveError` if it is damaged; ``BackupError`` if it is not held, or there is no
  ///   room for a temporary file.
  fileprivate static func blob(_ cid: CID, _ state: BlobState, in archived: ArchivedSnapshot)
    async throws -> RequestBody
  {
    try await onOwnQueue {
      defer { archived.reader.releasePages() }
      if case .held(let length) = state, length <= maximumInMemory,
        let bytes = try archived.reader.body(of: cid, limit: Int(length))
      {
        return RequestBody(bytes)
      }
      let file = try TemporaryFile()
      guard try archived.reader.read(cid, each: { try file.write($0) }) else {
        throw BackupError.notFound("\(cid)")
      }
      return RequestBody(byteCount: UInt64(file.count)) { offset, count in
        try file.bytes(at: offset, count: count)
      }
    }
  }
}
