package import ATProtocol
package import HTTP
package import IPLD
internal import XRPC

/// What a server says publicly of an account.
package enum ServerStanding: Sendable, Equatable {
  /// It serves the account, whose head is at this revision.
  case active(rev: TID, head: CID)
  /// It has the account, deactivated.
  case deactivated
  /// It has the account, and does not serve it: why.
  case withheld(String)
  /// It answers, and has no such account: what it says.
  case absent(String)
  /// It does not answer: why.
  case silent(String)

  /// How often to ask a server that may be gone for good.
  private static let attempts = 2

  /// Whether the server serves the account.
  var isActive: Bool { if case .active = self { true } else { false } }

  /// Whether the server answers and has the account.
  package var isThere: Bool {
    switch self {
    case .active, .deactivated, .withheld: true
    case .absent, .silent: false
    }
  }

  /// The text for people, after the server's name.
  package var sentence: String {
    switch self {
    case .active(let rev, _): "has the account, active, at revision \(rev.text)"
    case .deactivated: "has the account, deactivated"
    case .withheld(let why): "has the account, but does not serve it: \(why)"
    case .absent: "has no such account"
    case .silent(let why): "does not answer as it should (\(why))"
    }
  }

  /// Asks a server.
  ///
  /// - Throws: `CancellationError`.
  package init(of did: DID, at url: String, _ network: Network) async throws {
    do {
      let latest = try await XRPCClient(service: url, network: network).call(
        .getLatestCommit(did), attempts: min(Self.attempts, network.options.attempts))
      self = .active(rev: latest.rev, head: latest.cid)
    } catch let error as XRPCError {
      switch error.declared(RepoError.self) {
      case _ where error.mayPass: self = .silent("\(error)")
      case .deactivated: self = .deactivated
      case let declared? where declared != .notFound: self = .withheld(declared.sentence)
      case .notFound: self = .absent("\(error)")
      // Others put it into words of their own.
      default: self = [400, 404].contains(error.status) ? .absent("\(error)") : .silent("\(error)")
      }
    } catch let error as TransportError {
      self = .silent("\(error)")
    }
  }
}

/// The server that an account leaves, as far as it answers.
package struct SourceServer: Sendable {
  /// Its URL.
  package let url: String
  /// What it says of the account.
  package let standing: ServerStanding
  /// As the account's owner; nil without a password.
  let client: XRPCClient?

  /// Finds out what it says, and logs in if there is a password.
  ///
  /// - Throws: `CancellationError`; what logging in throws.
  init(
    _ url: String, of did: DID, called handle: Handle?, _ network: Network,
    _ options: RestoreOptions
  ) async throws {
    self.url = url
    standing = try await ServerStanding(of: did, at: url, network)
    guard let password = options.oldPassword, standing.isThere else {
      client = nil
      return
    }
    client = try await DestinationServer.loggedIn(
      at: url, network, as: did.text, of: did, or: handle, (password, options.authFactorToken),
      asking: options.asksForCode
    ).client
  }

  /// Whether a handle is lost with the server: it is under a domain of the server's, or, where that
  /// does not answer, leads nowhere any more.
  static func takesAlong(
    _ handle: Handle, of did: DID, from server: SourceServer?, _ network: Network
  ) async throws -> Bool {
    guard let server, server.standing.isThere else {
      return try await IdentityResolver(network: network).confirm(handle, of: did).source == nil
    }
    let said = try await XRPCClient(service: server.url, network: network).call(.describeServer())
    return said.userDomains.contains(where: handle.text.hasSuffix)
  }
}
