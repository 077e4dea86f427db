import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// The stand-in itself: what it lets pass and what it refuses, as real servers were seen to.
@Suite struct `A server that is written to` {
  /// A server with an account, and a token of the account's owner.
  private struct Scene {
    let directory: StandInDirectory
    let server: StandInPDS
    let account: StandInAccount
    let token: String

    init(_ behaviour: Behaviour = Behaviour(), posts: Int = 3, blobs: Int = 2) throws {
      directory = try StandInDirectory()
      server = try StandInPDS(behaviour: behaviour)
      account = try StandInAccount("somebody", posts: posts, blobs: blobs)
      account.appPassword = "app-password"
      server.add(account)
      server.directory = directory
      try directory.register(account, on: server.url)
      token = try Self.logIn(server, account, account.password)
    }

    static func logIn(_ server: StandInPDS, _ account: StandInAccount, _ password: String) throws
      -> String
    {
      let input = #"{"identifier":"\#(account.did)","password":"\#(password)"}"#
      let (_, body) = try Scene.post(
        server, "com.atproto.server.createSession", Array(input.utf8), type: "application/json")
      return try #require(try DataModelJSON.decode(body)["accessJwt"]?.string)
    }

    static func post(
      _ server: StandInPDS, _ method: String, _ body: [UInt8]?, type: String?, token: String? = nil
    ) throws -> (status: Int, body: [UInt8]) {
      try LoopbackClient.post(
        port: server.server.port, path: "/xrpc/\(method)", body: body, type: type, token: token)
    }

    func post(_ method: String, _ body: [UInt8]?, type: String?, token: String? = nil) throws -> (
      status: Int, error: String
    ) {
      let (status, body) = try Self.post(
        server, method, body, type: type, token: token ?? self.token)
      let json = try? DataModelJSON.decode(body)
      return (status, json?["error"]?.string ?? "")
    }

    func importing(_ car: [UInt8]) throws -> (status: Int, error: String) {
      try post("com.atproto.repo.importRepo", car, type: "application/vnd.ipld.car")
    }
  }

  @Test func `wants a login with the account's own password for what moves it`() throws {
    let scene = try Scene()
    let app = try Scene.logIn(scene.server, scene.account, "app-password")
    for method in [
      "com.atproto.server.activateAccount", "com.atproto.identity.requestPlcOperationSignature",
    ] {
      let (status, error) = try scene.post(method, nil, type: nil, token: app)
      #expect(status == 400)
      #expect(error == "InvalidToken")
    }
    let car = scene.account.car()
    let result = try scene.post(
      "com.atproto.repo.importRepo", car, type: "application/vnd.ipld.car", token: app)
    #expect(result.error == "InvalidToken")
    let blob = try scene.post(
      "com.atproto.repo.uploadBlob", [1, 2, 3], type: "image/x-any", token: app)
    #expect(blob.status == 200)
  }

  @Test func `wants bodies where they belong, of their types`() throws {
    let scene = try Scene()
    func status(_ method: String, _ body: [UInt8]?, _ type: String?) throws -> Int {
      try scene.post(method, body, type: type).status
    }
    #expect(
      try status("com.atproto.server.activateAccount", Array("{}".utf8), "application/json") == 400)
    #expect(try status("com.atproto.server.activateAccount", nil, nil) == 200)
    #expect(try status("com.atproto.server.deactivateAccount", nil, nil) == 400)
    #expect(
      try status("com.atproto.server.deactivateAccount", Array("{}".utf8), "application/json")
        == 200)
    #expect(try status("com.atproto.repo.importRepo", scene.account.car(), nil) == 400)
    #expect(try status("com.atproto.repo.importRepo", scene.account.car(), "text/plain") == 400)
    #expect(try status("com.atproto.repo.uploadBlob", [], "image/png") == 400)
  }

  @Test func `takes repositories that are whole, and no others`() throws {
    let scene = try Scene()
    let car = scene.account.car()
    #expect(try scene.importing(car).status == 200)
    #expect(try scene.importing(car).status == 200)
    #expect(try scene.importing(Array(car.dropLast())).status == 500)
    #expect(try scene.importing(Array("not a CAR".utf8)).status == 500)
    var spoilt = car
    spoilt[car.count - 5] ^= 1
    #expect(try scene.importing(spoilt).status == 500)
    // A record that is missing, a node, the commit.
    let (header, blocks) = try Self.blocks(car)
    let record = try #require(scene.account.recordCID(of: scene.account.paths[0]))
    let without = try scene.importing(Self.car(header, blocks.filter { $0.cid != record }))
    #expect(without == (400, "InvalidRequest"))
    let commit = scene.account.head
    #expect(try scene.importing(Self.car(header, blocks.filter { $0.cid != commit })).status == 500)
    #expect(try scene.importing(Self.car([], blocks)).status == 400)
    #expect(try scene.importing(Self.car([commit, commit], blocks)).status == 400)
    // In any order, and twice.
    #expect(try scene.importing(Self.car(header, blocks.reversed() + blocks)).status == 200)
  }

  /// As surprising as it is: another account's repository is taken.
  @Test func `takes another account's repository without a murmur`() throws {
    let scene = try Scene()
    let other = try StandInAccount("other", posts: 4)
    #expect(try scene.importing(other.car()).status == 200)
    #expect(scene.account.paths == other.paths)
  }

  @Test func `forgets no reference of records that an import took away`() throws {
    let scene = try Scene(posts: 8, blobs: 8)
    let blobs = scene.account.referencedBlobs
    let empty = try StandInAccount("somebody", posts: 0)
    #expect(try scene.importing(empty.car()).status == 200)
    #expect(scene.account.paths.isEmpty)
    for cid in blobs { scene.account.lose(cid) }
    let (_, body) = try LoopbackClient.get(
      port: scene.server.server.port, path: "/xrpc/com.atproto.repo.listMissingBlobs",
      token: scene.token)
    let listed = try DataModelJSON.decode(Array(body.utf8))["blobs"]?.array?.count
    #expect(listed == blobs.count)
  }

  @Test func `keeps the type of the first upload, and believes the bytes more than the header`()
    throws
  {
    let scene = try Scene()
    let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 7]
    func type(_ bytes: [UInt8], _ said: String) throws -> String? {
      let (_, body) = try Scene.post(
        scene.server, "com.atproto.repo.uploadBlob", bytes, type: said, token: scene.token)
      return try DataModelJSON.decode(body)["blob"]?["mimeType"]?.string
    }
    #expect(try type(png, "application/octet-stream") == "image/png")
    #expect(try type([1, 2], "application/x-one; charset=utf-8") == "application/x-one")
    let refused = try scene.post("com.atproto.repo.uploadBlob", [1], type: "text/plain")
    #expect(refused.status == 500)
  }

  /// The token of a caller in each way that it can be wrong, and what is answered.
  @Test func `looks at tokens that vouch for an account`() throws {
    let scene = try Scene()
    let other = try StandInPDS()
    other.directory = scene.directory
    func create(_ token: String?) throws -> (Int, String) {
      let input =
        #"{"did":"\#(scene.account.did)","handle":"anyone.example.com","email":"a@example.com","password":"x"}"#
      let (status, body) = try Scene.post(
        other, "com.atproto.server.createAccount", Array(input.utf8), type: "application/json",
        token: token)
      return (status, (try? DataModelJSON.decode(body))?["error"]?.string ?? "")
    }
    let now = Date().timeIntervalSince1970
    let method = "com.atproto.server.createAccount"
    func token(
      _ audience: String, _ method: String?, _ key: SigningKey, at time: Double = now,
      did: String? = nil
    ) -> String {
      StandInPDS.serviceToken(
        of: did ?? scene.account.did, for: audience, method: method, key: key, now: time)
    }
    let key = scene.account.key
    #expect(try create(nil) == (401, "AuthenticationRequired"))
    #expect(try create("nonsense") == (500, "InternalServerError"))
    #expect(try create(scene.token) == (401, "BadJwt"))
    #expect(try create(token("did:web:elsewhere", method, key)) == (401, "BadJwtAudience"))
    #expect(try create(token(other.serviceDID, nil, key)) == (401, "BadJwtLexiconMethod"))
    #expect(try create(token(other.serviceDID, method, key, at: now - 120)) == (401, "JwtExpired"))
    #expect(
      try create(token(other.serviceDID, method, SigningKey(seed: "another")))
        == (401, "BadJwtSignature"))
    #expect(
      try create(token(other.serviceDID, method, key, did: "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"))
        == (401, "AuthenticationRequired"))
    #expect(try create(token(other.serviceDID, method, key)) == (200, ""))
    #expect(try create(token(other.serviceDID, method, key)) == (400, "AlreadyExists"))
  }

  private static func blocks(_ car: [UInt8]) throws -> ([CID], [Block]) {
    var rest: [UInt8]? = car
    var reader = CARReader<Never> { () throws(Never) -> [UInt8]? in
      defer { rest = nil }
      return rest
    }
    let header = try reader.readHeader()
    var blocks: [Block] = []
    while let block = try reader.next() { blocks.append(block) }
    return (header.roots, blocks)
  }

  private static func car(_ roots: [CID], _ blocks: [Block]) -> [UInt8] {
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: roots, to: &bytes)
    for block in blocks {
      let body = block.bytes
      CARWriter.appendSection(block.cid, body.span, to: &bytes)
    }
    return bytes
  }
}

@Suite struct `A directory that takes operations` {
  private struct Scene {
    let directory: StandInDirectory
    let account: StandInAccount

    init() throws {
      directory = try StandInDirectory()
      account = try StandInAccount("somebody")
      try directory.register(account, on: "https://pds.example.com")
    }

    func signed(_ change: (inout IPLDMap) -> Void, by key: SigningKey? = nil, highS: Bool = false)
      throws -> IPLDValue
    {
      var map = try #require(directory.current(account.did)?.map)
      let last = try #require(directory.operations(of: account.did).last)
      let bytes = try DAGCBOREncoder.encode(last)
      map["prev"] = .string("\(CID(codec: .dagCBOR, hashing: bytes.span))")
      map["sig"] = nil
      change(&map)
      let signature = (key ?? account.rotation).sign(
        try DAGCBOREncoder.encode(.map(map)), highS: highS)
      map["sig"] = .string(Self.base64URL(signature))
      return .map(map)
    }

    static func base64URL(_ bytes: [UInt8]) -> String {
      Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
        .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    }

    func status(_ operation: IPLDValue) -> Int {
      directory.take(operation, for: account.did).status
    }
  }

  @Test func `refuses what is malformed, unsigned, or out of order`() throws {
    let scene = try Scene()
    #expect(scene.status(try scene.signed { $0["extra"] = .null }) == 400)
    #expect(scene.status(try scene.signed { $0["prev"] = .null }) == 400)
    #expect(scene.status(try scene.signed { $0["prev"] = .string("no CID") }) == 500)
    #expect(scene.status(try scene.signed({ _ in }, by: SigningKey(seed: "a stranger"))) == 400)
    #expect(scene.status(try scene.signed({ _ in }, highS: true)) == 400)
    #expect(
      scene.status(
        try scene.signed {
          $0["alsoKnownAs"] = .array((0..<11).map { .string("at://\($0).example.com") })
        }) == 400)
    #expect(
      scene.status(
        try scene.signed {
          var services: IPLDMap = [:]
          for number in 0..<9 {
            services["s\(number)"] = .map([
              "type": .string("X"),
              "endpoint": .string("https://" + String(repeating: "a", count: 480)),
            ])
          }
          $0["services"] = .map(services)
        }) == 400)
    let good = try scene.signed { $0["alsoKnownAs"] = .array([.string("at://new.example.com")]) }
    #expect(scene.status(good) == 200)
    #expect(scene.status(good) == 400)
  }

  @Test func `lets a stronger key take back what a weaker one signed, for three days`() throws {
    for (seconds, status) in [(71.9 * 3600, 200), (72.1 * 3600, 400)] {
      let scene = try Scene()
      let owner = SigningKey(seed: "owner")
      try scene.directory.addRotationKey(
        "did:key:" + owner.multikey, of: scene.account.did, signedBy: scene.account.rotation)
      let recovery = try scene.signed(
        { $0["alsoKnownAs"] = .array([.string("at://mine.example.com")]) }, by: owner)
      // The server removes the account.
      let theft = try scene.signed {
        $0["alsoKnownAs"] = .array([.string("at://theirs.example.com")])
      }
      #expect(scene.status(theft) == 200)
      scene.directory.advance(seconds: seconds)
      #expect(scene.status(recovery) == status)
    }
  }

  @Test func `takes ten operations an hour`() throws {
    let scene = try Scene()
    var taken = 0
    for number in 0..<12 {
      let operation = try scene.signed {
        $0["alsoKnownAs"] = .array([.string("at://n\(number).example.com")])
      }
      if scene.status(operation) == 200 { taken += 1 }
    }
    #expect(taken == 10)
  }
}
