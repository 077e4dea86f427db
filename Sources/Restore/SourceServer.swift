internal import ATProtocol
internal import IPLD
internal import Snapshots
internal import XRPC

/// The server that an account leaves, as far as it is there.
struct SourceServer: Sendable {
  /// What it says of the account.
  enum Standing: Sendable {
    /// It serves the account, whose head is at this revision.
    case active(rev: TID, head: CID)
    /// It has the account, and does not serve it: why.
    case inactive(String)
    /// It answers, and has no such account.
    case gone(String)
    /// It does not answer.
    case silent(String)

    /// Whether it answers and has the account.
    var isThere: Bool {
      switch self {
      case .active, .inactive: true
      case .gone, .silent: false
      }
    }
  }

  /// How often a server is asked that may be gone for good.
  private static let attempts = 2

  let url: String
  let standing: Standing
  /// As the account's owner; nil without a password.
  let client: XRPCClient?

  /// Whether it answers and has the account.
  var isThere: Bool { standing.isThere }

  /// Finds out what it says.
  ///
  /// - Throws: `CancellationError`; what logging in throws.
  init(
    _ url: String, of did: DID, network: Network, _ options: RestoreOptions
  ) async throws {
    self.url = url
    standing = try await Self.standing(of: did, at: url, network)
    guard let password = options.oldPassword, standing.isThere else {
      client = nil
      return
    }
    let session = try await Session.begin(
      service: url, network: network, identifier: did.text, (password, options.authFactorToken),
      asking: options.asksForCode)
    client = XRPCClient(service: url, network: network, session: session)
  }

  /// Whether a handle is lost with the server: it is under a domain of the server's, or, where that
  /// does not answer, leads nowhere any more.
  static func takesAlong(
    _ handle: Handle, of did: DID, from url: String?, isThere: Bool, network: Network
  ) async throws -> Bool {
    guard let url, isThere else {
      return try await IdentityResolver(network: network).confirm(handle, of: did).source == nil
    }
    let said = try await XRPCClient(service: url, network: network).call(DescribeServer())
    return said.userDomains.contains(where: handle.text.hasSuffix)
  }

  /// What a server says of an account.
  static func standing(of did: DID, at url: String, _ network: Network) async throws
    -> Standing
  {
    do {
      let latest = try await XRPCClient(service: url, network: network)
        .call(
          GetLatestCommit(did: did), as: nil,
          attempts: min(Self.attempts, network.options.attempts))
      return .active(rev: latest.rev, head: latest.cid)
    } catch let error as XRPCError {
      guard !error.isTransient else { return .silent("\(error)") }
      if let declared = error.declared(RepoError.self), declared != .notFound {
        return .inactive(declared.sentence)
      }
      return .gone("\(error)")
    } catch let error as TransportError {
      return .silent("\(error)")
    }
  }
}
