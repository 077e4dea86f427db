internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// Proofs of posts from the servers of their authors.
///
/// 1. An author costs one request to a directory, and a server no more than its budget.
/// 2. A server that has failed ``maximumFailures`` times is no longer asked.
/// 3. Only a valid proof is kept.
struct ContextProofs: Sendable {
  private let network: Network
  private let resolver: DIDResolver
  /// The documents of authors; nil for those that do not come.
  private var documents: [DID: Author?] = [:]
  private var requests: [String: Int] = [:]
  /// The most requests to one server.
  private let budget: Int
  private var failures: [String: Int] = [:]
  /// How many posts could not be proven, and how many were not asked for because of a budget.
  private(set) var unprovenCount = 0
  private(set) var leftOutCount = 0

  /// How often a server may fail.
  private static let maximumFailures = 3
  /// How many requests run at a time.
  private static let concurrency = 8
  /// The most bytes of a proof.
  private static let maximumProof = 512 << 10
  /// After how many seconds an unfinished request is given up.
  private static let seconds = 30.0

  /// An author: the DID document as received, and the server that it names.
  private struct Author: Sendable {
    let did: DID
    let bytes: [UInt8]
    let server: String
  }

  /// A post whose proof is requested.
  private struct Wanted: Sendable {
    let uri: ATURI
    let post: ContextItem.Post
    let author: Author
  }

  /// The result for it.
  private struct Found: Sendable {
    let wanted: Wanted
    var proof: ContextProof?
    var isFailure = false
  }

  init(_ network: Network, budget: Int) {
    (self.network, self.budget) = (network, budget)
    resolver = IdentityResolver(network: network).dids
  }

  /// The valid proofs of some posts.
  ///
  /// - Throws: `CancellationError`.
  mutating func proofs(of posts: [(uri: ATURI, post: ContextItem.Post)]) async throws
    -> [String: ContextProof]
  {
    try await resolve(posts.compactMap { $0.uri.did })
    var wanted: [Wanted] = []
    for (uri, post) in posts {
      guard let did = uri.did, let author = documents[did] ?? nil else {
        unprovenCount += 1
        continue
      }
      guard requests[author.server, default: 0] < budget,
        failures[author.server, default: 0] < Self.maximumFailures
      else {
        leftOutCount += 1
        continue
      }
      requests[author.server, default: 0] += 1
      wanted.append(Wanted(uri: uri, post: post, author: author))
    }
    let found = Collected<Found>()
    try await forEachConcurrently(wanted, atATime: Self.concurrency) { [self] wanted in
      do {
        let car = try await car(of: wanted.uri, from: wanted.author.server)
        let proof = car.map { ContextProof(car: $0, document: wanted.author.bytes) }
        let holds = proof.map { $0.fault(of: wanted.post, at: wanted.uri) == nil } ?? false
        await found.add(Found(wanted: wanted, proof: holds ? proof : nil))
      } catch is TransportError {
        await found.add(Found(wanted: wanted, isFailure: true))
      }
    }
    var proofs: [String: ContextProof] = [:]
    for one in await found.items {
      if one.isFailure { failures[one.wanted.author.server, default: 0] += 1 }
      if one.proof == nil { unprovenCount += 1 }
      proofs[one.wanted.uri.text] = one.proof
    }
    return proofs
  }

  /// Finds the documents of authors that are not known.
  private mutating func resolve(_ authors: [DID]) async throws {
    let open = Array(Set(authors).filter { documents[$0] == nil })
    let found = Collected<Author>()
    try await forEachConcurrently(open, atATime: Self.concurrency) { [resolver] did in
      do {
        let (bytes, document) = try await resolver.document(of: did)
        if let server = document.pds {
          await found.add(Author(did: did, bytes: bytes, server: server))
        }
      } catch let error where error is IdentityError || error is TransportError {
        // What has no document has no proof.
      }
    }
    for did in open { documents[did] = .some(nil) }
    for author in await found.items { documents[author.did] = author }
  }

  /// A proof as a server gives it; nil if it gives none.
  ///
  /// The author's document names the server, so it is asked only where any server may point to.
  private func car(of uri: ATURI, from server: String) async throws -> [UInt8]? {
    guard let did = uri.did, let path = uri.path else { return nil }
    let query = [
      ("did", did.text), ("collection", path.collection), ("rkey", path.recordKey),
    ].map { "\($0)=\(HTTPURL.escaped($1))" }.joined(separator: "&")
    let url = "\(server)/xrpc/com.atproto.sync.getRecord"
    var request = HTTPRequest(.get, "\(url)?\(query)", attempts: 2)
    request.isPointedTo = true
    request.seconds = Self.seconds
    let (_, body) = try await network.send(request) { response in
      try await response.body.collect(upTo: Self.maximumProof, of: url)
    }
    return body
  }
}

extension ATURI {
  /// The DID that it names, if it names one.
  fileprivate var did: DID? { if case .did(let did) = authority { did } else { nil } }
}
