import ATProtocol
import Archive
import IPLD
import NIOHTTP1
import Snapshots

/// What a personal data server answers, of what is on the shelf.
///
/// The answers are those of the reference server, as far as an archive can give them.
struct Endpoints: Sendable {
  let shelf: Shelf
  let threads: WorkThreads
  let repositories: Repositories
  let budget: SendBudget
  let directory: Directory
  let options: ServerOptions

  /// Responds to a query.
  ///
  /// - Parameters:
  ///   - method: its name.
  ///   - request: the request.
  ///   - origin: how the server was addressed, `http://host:port`.
  /// - Throws: ``XRPCFault``, and what reading an archive throws.
  func answer(_ method: String, _ request: Request, origin: String) async throws -> Response {
    let parameters = Parameters(request.query)
    switch method {
    case "_health": return .json { $0.field("version", options.tool) }
    case "com.atproto.server.describeServer": return describeServer(origin)
    case "com.atproto.identity.resolveHandle": return try resolveHandle(parameters)
    case "com.atproto.sync.getLatestCommit": return try latestCommit(parameters)
    case "com.atproto.sync.getRepoStatus": return try repoStatus(parameters)
    case "com.atproto.sync.listRepos": return try listRepos(parameters)
    default:
      return try await withTaskExecutorPreference(threads) {
        try await read(method, parameters, request, origin)
      }
    }
  }

  /// Responds from an archive, or from a repository laid out of one.
  private func read(
    _ method: String, _ parameters: Parameters, _ request: Request, _ origin: String
  ) async throws -> Response {
    switch method {
    case "com.atproto.repo.describeRepo": return try await describeRepo(parameters, origin)
    case "com.atproto.repo.listRecords": return try await listRecords(parameters)
    case "com.atproto.repo.getRecord": return try await getRecord(parameters)
    case "com.atproto.sync.getRepo": return try await getRepo(parameters, request)
    case "com.atproto.sync.listBlobs": return try await listBlobs(parameters)
    case "com.atproto.sync.getBlob": return try await getBlob(parameters, request)
    case "com.atproto.sync.getBlocks": return try await getBlocks(parameters)
    case "com.atproto.sync.getRecord": return try await recordProof(parameters)
    default: throw Self.notHere(method)
    }
  }

  /// The methods that are counted separately.
  static let names: Set<String> = [
    "_health", "com.atproto.server.describeServer", "com.atproto.identity.resolveHandle",
    "com.atproto.repo.describeRepo", "com.atproto.repo.listRecords", "com.atproto.repo.getRecord",
    "com.atproto.sync.getRepo", "com.atproto.sync.getLatestCommit",
    "com.atproto.sync.getRepoStatus", "com.atproto.sync.listRepos", "com.atproto.sync.listBlobs",
    "com.atproto.sync.getBlob", "com.atproto.sync.getBlocks", "com.atproto.sync.getRecord",
  ]

  /// The response to writes, logins and all other methods that an archive does not have.
  static func notHere(_ method: String) -> XRPCFault {
    XRPCFault(
      "MethodNotImplemented",
      "this server only reads archives: \(method.prefix(100)) is not available",
      status: .notImplemented)
  }

  // MARK: What the others need

  /// The account that a parameter names by its DID.
  func account(_ parameters: Parameters, _ name: String = "did") throws(XRPCFault) -> ServedAccount
  {
    let text = try parameters.required(name)
    guard let account = shelf.account(text) else {
      guard (try? ATIdentifier(text)) != nil else {
        throw .invalid("\(name) must be a valid did or a handle")
      }
      throw XRPCFault("RepoNotFound", "Could not find repo for DID: \(text.prefix(200))")
    }
    return account
  }

  func repository(_ account: ServedAccount) async throws -> LaidOutRepository {
    try await repositories.laidOut(account.snapshot(), account.entry.cid)
  }

  // MARK: The server and the identities

  private func describeServer(_ origin: String) -> Response {
    let host = origin.drop { $0 != "/" }.dropFirst(2).map { $0 == ":" ? "%3A" : String($0) }
      .joined()
    return .json { json in
      json.field("did", "did:web:\(host)")
      json.field("availableUserDomains", [String]())
      json.field("inviteCodeRequired", true)
      // What the lexicon does not know, clients pass over.
      json.key("archive")
      json.beginObject()
      json.field("readOnly", true)
      json.field("tool", options.tool)
      json.field("newest", shelf.accounts.map(\.entry.createdAt).max())
      json.endObject()
    }
  }

  private func resolveHandle(_ parameters: Parameters) throws(XRPCFault) -> Response {
    let handle = try parameters.required("handle")
    guard !handle.hasPrefix("did:"), let account = shelf.account(handle) else {
      throw XRPCFault("HandleNotFound", "Unable to resolve handle")
    }
    return .json { $0.field("did", account.did.text) }
  }
}
