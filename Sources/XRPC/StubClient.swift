public import ATProtocol
internal import FoundationEssentials
public import IPLD

public struct XRPCError: Error {
  public var status: Int; public var name: String?;
  public var isTransient: Bool { status >= 500 || status == 429 }
  public func declared<T: RawRepresentable<String>>(_ t: T.Type) -> T? {
    name.flatMap { T(rawValue: $0) }
  }
}
public actor Session {}
struct ErrBody: Decodable { var error: String? }
public struct XRPCClient: Sendable {
  let service: String, network: Network
  public init(service: String, network: Network, session: Session? = nil) {
    self.service = service; self.network = network
  }
  func get<T: Decodable>(_ path: String, _ t: T.Type) async throws -> T {
    let (r, b) = try await network.get(service + "/xrpc/" + path, limit: 4 << 20)
    guard r.isSuccess else {
      throw XRPCError(
        status: r.status, name: (try? JSONDecoder().decode(ErrBody.self, from: Data(b)))?.error)
    }
    return try JSONDecoder().decode(T.self, from: Data(b))
  }
  func str(_ path: String, _ sink: any ResponseSink, c: Bool) async throws -> HTTPResponse {
    let (r, b) = try await network.transport.send(
      HTTPRequest(.get, service + "/xrpc/" + path, acceptsCompression: c), to: sink)
    guard r.isSuccess else {
      throw XRPCError(
        status: r.status, name: (try? JSONDecoder().decode(ErrBody.self, from: Data(b)))?.error)
    }
    return r
  }
  public func call(_ q: ListBlobs) async throws -> ListBlobs.Output {
    try await get(
      "com.atproto.sync.listBlobs?did=\(q.did)&limit=1000\(q.cursor.map { "&cursor=\($0)" } ?? "")",
      ListBlobs.Output.self)
  }
  public func call(_ q: ListRepos) async throws -> ListRepos.Output { fatalError() }
  public func call(_ q: GetLatestCommit) async throws -> GetLatestCommit.Output {
    try await get("com.atproto.sync.getLatestCommit?did=\(q.did)", GetLatestCommit.Output.self)
  }
  public func stream(_ q: GetRepo, into sink: any ResponseSink) async throws -> HTTPResponse {
    try await str(
      "com.atproto.sync.getRepo?did=\(q.did)\(q.since.map { "&since=\($0.text)" } ?? "")", sink,
      c: true)
  }
  public func stream(_ q: GetBlob, into sink: any ResponseSink) async throws -> HTTPResponse {
    try await str("com.atproto.sync.getBlob?did=\(q.did)&cid=\(q.cid)", sink, c: false)
  }
}
public struct ListBlobs: Sendable {
  var did: DID; var cursor: String?;
  public init(did: DID, since: String? = nil, limit: Int? = nil, cursor: String? = nil) {
    self.did = did; self.cursor = cursor
  }
  public struct Output: Sendable, Decodable {
    public var cids: [String]; public var cursor: String?
  }
}
public struct GetLatestCommit: Sendable {
  var did: DID; public init(did: DID) { self.did = did }
  public struct Output: Sendable, Decodable { public var cid: String; public var rev: String }
}
public struct GetRepo: Sendable {
  var did: DID; var since: TID?;
  public init(did: DID, since: TID? = nil) { self.did = did; self.since = since }
  public enum DeclaredError: String, Sendable {
    case repoNotFound = "RepoNotFound"; public var sentence: String { "" }
  }
}
public struct GetBlob: Sendable {
  var did: DID; var cid: CID; public init(did: DID, cid: CID) { self.did = did; self.cid = cid }
}
public struct ListRepos: Sendable {
  public init(limit: Int, cursor: String?) {}
  public struct Output: Sendable {
    public struct Repo: Sendable {
      public var did: DID; public var head: CID?; public var active: Bool?;
      public var status: String?
    }
    public var repos: [Repo]; public var cursor: String?
  }
}
