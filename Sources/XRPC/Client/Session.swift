package import ATProtocol
package import HTTP
internal import IPLD

/// An authenticated session: a token that is renewed when it expires, once for all who use it at
/// the time.
///
/// Tokens and password are kept in memory only, and go to that server only.
package actor Session {
  /// The server's base URL.
  package nonisolated let service: String
  /// The name to log in with: a handle, a DID or a mail address.
  package nonisolated let identifier: String

  private let did: DID?
  private let network: Network
  private let login: XRPCQuery<SessionTokens>

  /// The current tokens, and when they were issued.
  private var tokens: (value: SessionTokens, at: Double)?
  private var renewal: (task: Renewal, waiting: Int)?
  private typealias Renewal = Task<SessionTokens, any Error>
  /// Whether the server has accepted the current token, so that it was valid once.
  private var hasServed = false
  /// The server's refusal of the password, which is not sent again: repeated wrong passwords lock
  /// an account.
  private var refusal: XRPCError?

  /// A session that begins when it is first needed.
  ///
  /// - Parameters:
  ///   - service: the server's base URL.
  ///   - network: the way there.
  ///   - identifier: a handle, a DID or a mail address.
  ///   - did: whose session it has to be; nil if only the server knows.
  ///   - password: the account's password, or an app password.
  ///   - authFactorToken: the code that came by mail, if the account asks for one.
  ///   - allowTakendown: whether a session is also accepted that can only fetch the data of an
  ///     account that was taken down.
  package init(
    service: String, network: Network, identifier: String, of did: DID?, password: Secret,
    authFactorToken: Secret? = nil, allowTakendown: Bool = false
  ) {
    self.service = service
    self.network = network
    (self.identifier, self.did) = (identifier, did)
    login = .createSession(
      identifier, password, code: authFactorToken, allowTakendown: allowTakendown)
  }

  /// The account, known once the session has begun; begins it.
  ///
  /// - Throws: what logging in throws.
  package func account() async throws -> DID { try await current().did }

  /// Whether the account is active, as far as the server says it; begins the session.
  ///
  /// - Throws: what logging in throws.
  package func isActive() async throws -> Bool { try await current().isActive }

  /// The account's mail address, if the server says it; begins the session.
  ///
  /// - Throws: what logging in throws.
  package func email() async throws -> String? { try await current().email }

  /// The token for requests; begins the session, or renews the token if it says that it is about to
  /// expire.
  ///
  /// - Throws: ``XRPCError`` if the server refuses; ``TransportError``.
  func accessToken() async throws -> Secret {
    let tokens = try await current()
    guard let end = JSONWebToken.expiry(tokens.accessJwt),
      end - network.clock.unixTime < Self.renewedBefore,
      // A server whose clock is wrong would have every token renewed before it is used.
      isOlder(than: Self.leastAge)
    else { return tokens.accessJwt }
    return try await renewed().accessJwt
  }

  /// Replaces a token that the server has refused.
  ///
  /// - Parameter error: how it was refused.
  /// - Returns: Whether there is a new token: if not, the server refuses all tokens, or refused
  ///   something else.
  /// - Throws: ``XRPCError`` if the server refuses to renew it; ``TransportError``.
  func renew(instead refused: Secret, after error: XRPCError) async throws -> Bool {
    let isExpired = error.name == "ExpiredToken"
    let isOver = isExpired || error.name == "InvalidToken"
    guard error.status == 401 || error.status == 400 && isOver, !error.isPage else { return false }
    let present = try await current()
    // Another caller has done it in the meantime.
    guard present.accessJwt == refused else { return true }
    // However young it is, one that was good and is said to have expired has: there are servers
    // with tokens for seconds.
    guard isOlder(than: Self.leastAge) || renewal != nil || isExpired && hasServed else {
      return false
    }
    return try await renewed().accessJwt != refused
  }

  /// Notes that the server has answered to a token.
  func served(_ token: Secret) { if tokens?.value.accessJwt == token { hasServed = true } }

  /// Whether the session's token may go to a server.
  nonisolated func isFor(_ service: String) -> Bool {
    do throws(TransportError) {
      return try HTTPURL(self.service).hasSameOrigin(as: try HTTPURL(service))
    } catch {
      // A service that is not a URL gets no token, and no answer either.
      return false
    }
  }

  /// How long before its end a token is renewed, in seconds.
  private static let renewedBefore = 30.0
  /// A token that is refused sooner than this, in seconds, has not expired.
  private static let leastAge = 20.0
}

extension Session {
  private func isOlder(than seconds: Double) -> Bool {
    tokens.map { network.clock.now - $0.at >= seconds } ?? true
  }

  private func current() async throws -> SessionTokens {
    if let tokens { return tokens.value }
    return try await shared { try await $0.logIn() }
  }

  private func renewed() async throws -> SessionTokens {
    guard let tokens else { return try await current() }
    return try await shared { try await $0.refresh(tokens.value) }
  }

  /// Renews the session once for all who ask at the time; a cancelled caller stops waiting, and
  /// does not cancel the renewal for the others.
  private func shared(
    _ work: @escaping @Sendable (Session) async throws -> SessionTokens
  ) async throws -> SessionTokens {
    let task = renewal?.task ?? Task { try await work(self) }
    renewal = (task, (renewal?.waiting ?? 0) + 1)
    defer { leave(task) }
    let result = try await task.valueUnlessCancelled
    if let did, result.did != did { throw OtherSession(service: service, did: result.did, of: did) }
    if tokens?.value.accessJwt != result.accessJwt {
      tokens = (result, network.clock.now)
      hasServed = false
    }
    return result
  }

  /// Stops waiting for the renewal; one without callers is cancelled.
  private func leave(_ task: Renewal) {
    guard let renewal, renewal.task == task else { return }
    if Task.isCancelled, renewal.waiting > 1 {
      self.renewal = (task, renewal.waiting - 1)
    } else {
      self.renewal = nil
      task.cancel()
    }
  }

  private func logIn() async throws -> SessionTokens {
    if let refusal { throw refusal }
    do {
      return try await client.call(login)
    } catch let error as XRPCError where !error.mayPass {
      refusal = error
      throw error
    }
  }

  private func refresh(_ tokens: SessionTokens) async throws -> SessionTokens {
    do {
      return try await client.call(.refreshSession(), as: tokens.refreshJwt)
    } catch let error as XRPCError where !error.mayPass {
      return try await logIn()
    }
  }

  /// In no session, because it makes one.
  private var client: XRPCClient { XRPCClient(service: service, network: network) }
}

/// A server began the session of another account than the one that was to be logged in.
package struct OtherSession: Error, Equatable, CustomStringConvertible {
  /// The server's base URL.
  let service: String
  /// Whose session it is.
  let did: DID
  /// Whose it should be.
  let expected: DID

  init(service: String, did: DID, of expected: DID) {
    (self.service, self.did, self.expected) = (service, did, expected)
  }

  /// The sentence for people.
  package var description: String {
    "\(service) logged in \(did) instead of \(expected); nothing was sent or kept as that account"
  }
}

/// A server ended a session while it was needed.
package struct SessionEnded: Error, CustomStringConvertible {
  /// How it refused.
  let refusal: XRPCError

  /// Whether a refusal of what a session asked for says that it has ended.
  package init?(_ refusal: XRPCError) {
    guard refusal.status == 401 || ["ExpiredToken", "InvalidToken"].contains(refusal.name),
      !refusal.isPage
    else { return nil }
    self.refusal = refusal
  }

  /// The sentence for people.
  package var description: String { "the session has ended: \(refusal)" }
}
