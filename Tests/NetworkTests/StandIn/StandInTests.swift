import ATProtocol
import HTTP
import IPLD
import StandIn
import TestSupport
import Testing

/// What the stand-in says has to be true, or what is tested against it means nothing.
struct `The stand-in for a server` {
  private static func network(_ server: StandInPDS) throws -> Network {
    var options = NetworkOptions(userAgent: "carpack tests")
    // Addresses on loopback are for servers that the user names.
    options.pds = server.url
    return try Network(options)
  }

  private static func get(_ server: StandInPDS, _ path: String) async throws -> (
    HTTPResponse, [UInt8]
  ) {
    let network = try network(server)
    return try await network.get(server.url + path, limit: 64 << 20)
  }

  @Test(arguments: Behaviour.observed.map(\.name))
  func `gives whole repositories with true signatures`(_ name: String) async throws {
    let behaviour = try #require(Behaviour.observed.first { $0.name == name }).behaviour
    let account = try StandInAccount("somebody", posts: 50, blobs: 7, style: behaviour.account)
    let server = try StandInPDS(accounts: [account], behaviour: behaviour)
    try account.advance()
    let before = account.rev
    try account.advance()
    let (_, document) = try await Self.get(server, "/\(account.did)")
    let key = try #require(DIDDocument(document.span).signingKey)
    let (response, car) = try await Self.get(
      server, "/xrpc/com.atproto.sync.getRepo?did=\(account.did)")
    #expect(response.status == 200)
    #expect(car == account.car(behaviour))
    let blocks = try Self.blocks(car)
    let commit = try #require(blocks[account.head])
    let isSigned = try Commit(commit.span).isSigned(by: key)
    #expect(isSigned)
    #expect(try Self.recordCount(blocks, account.head) == 54)
    // With what came before, a delta is all that there is.
    let (_, delta) = try await Self.get(
      server, "/xrpc/com.atproto.sync.getRepo?did=\(account.did)&since=\(before)")
    #expect(behaviour.since == .ignored ? delta == car : delta.count < car.count)
  }

  @Test func `gives blobs that hash to their names, in parts too`() async throws {
    let account = try StandInAccount("somebody", posts: 1, blobs: 4, blobSize: 200_001)
    var behaviour = Behaviour()
    behaviour.honoursRange = true
    let server = try StandInPDS(accounts: [account], behaviour: behaviour)
    for (cid, content) in account.blobs {
      let (_, bytes) = try await Self.get(
        server, "/xrpc/com.atproto.sync.getBlob?did=\(account.did)&cid=\(cid)")
      #expect(CID.blob(bytes) == cid)
      var part: [UInt8] = []
      content.forEachPiece(in: 65_000..<140_000) { piece in
        for index in piece.indices { part.append(piece[index]) }
      }
      #expect(part == Array(bytes[65_000..<140_000]))
    }
  }

  @Test func `knows what a client has read`() async throws {
    let account = try StandInAccount("somebody", posts: 1, blobs: 2)
    let server = try StandInPDS(accounts: [account])
    let cids = account.blobs.keys.map { "\($0)" }.sorted()
    server.play(FaultRule(.distorted(.cut(at: 0.5)), on: "getBlob", cid: cids[0]))
    do {
      // A network without references closes its connections.
      let network = try Self.network(server)
      for cid in cids {
        let url = "\(server.url)/xrpc/com.atproto.sync.getBlob?did=\(account.did)&cid=\(cid)"
        _ = try? await network.get(url, limit: 1 << 20, retries: false)
      }
    }
    for _ in 0..<500 where server.blobDeliveries.isEmpty {
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(server.blobDeliveries == [cids[1]: 1])
    #expect(server.blobRequests == [cids[0]: 1, cids[1]: 1])
  }

  private static func blocks(_ car: [UInt8]) throws -> [CID: [UInt8]] {
    var rest: [UInt8]? = car
    var reader = CARReader<Never> { () throws(Never) -> [UInt8]? in
      defer { rest = nil }
      return rest
    }
    var blocks: [CID: [UInt8]] = [:]
    while let block = try reader.next() { blocks[block.cid] = block.bytes }
    return blocks
  }

  private static func recordCount(_ blocks: [CID: [UInt8]], _ head: CID) throws -> Int {
    var count = 0
    let first = try #require(blocks[head])
    var open = [try Commit(first.span).data]
    while let cid = open.popLast() {
      let bytes = try #require(blocks[cid])
      let node = try MSTNode(bytes.span)
      if let left = node.left { open.append(left) }
      for entry in node.entries {
        #expect(blocks[entry.value] != nil)
        count += 1
        if let right = entry.right { open.append(right) }
      }
    }
    return count
  }
}
