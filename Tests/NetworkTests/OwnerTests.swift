import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up as the owner` {
  private static let password = "horse-battery-staple-secret"

  private static func scene(_ behaviour: Behaviour = Behaviour()) throws -> NetworkScene {
    let scene = try NetworkScene(posts: 20, blobs: 60, behaviour)
    scene.account.password = password
    scene.account.status = .deactivated
    return scene
  }

  private func backUp(_ scene: NetworkScene, password: String = password, _ more: String = "")
    throws
    -> Command.Result
  {
    try scene.folder.write("password", Array("\(password)\n".utf8))
    return try scene.command.run(scene.line("--login --password-file password \(more)"))
  }

  @Test func `brings an account that is deactivated, which others do not get`() throws {
    let scene = try Self.scene()
    let refused = try scene.backUp()
    #expect(refused.status == 69, "\(refused.text)\(refused.errors)")
    #expect(refused.errors.contains("deactivated"))
    #expect(
      refused.errors.contains("hint: if the account is yours, log in with --login; an archive"))
    let piece = try scene.command.run(
      "carpack fetch repo \(scene.account.did) \(scene.flags)")
    #expect(piece.errors.contains("hint: if the account is yours, log in"), "\(piece.errors)")
    let result = try backUp(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
  }

  @Test
  func `takes a handle that the server of a deactivated account does not resolve for unchecked`()
    throws
  {
    var behaviour = Behaviour()
    behaviour.resolvesDeactivated = false
    let scene = try Self.scene(behaviour)
    let result = try backUp(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("was not confirmed"), "\(result.errors)")
    scene.account.status = .active
    #expect(try backUp(scene).status == 0)
  }

  @Test func `brings what is deactivated to a server's operator, and names it to everybody else`()
    throws
  {
    var behaviour = Behaviour()
    behaviour.adminPassword = "admin-secret"
    let accounts = try (0..<3).map { try StandInAccount("account-\($0)", posts: 3, blobs: 2) }
    accounts[1].status = .deactivated
    accounts[2].status = .deleted
    let scene = try NetworkScene(accounts, behaviour)
    let all = "carpack backup --all --pds \(scene.server.url) \(scene.flags) -o all/"
    let without = try scene.command.run(all)
    #expect(without.status == 10, "\(without.text)\(without.errors)")
    #expect((without.text + without.errors).contains("\(accounts[1].did): skipped"))
    try scene.folder.write("admin", Array("admin-secret\n".utf8))
    let with = try scene.command.run("\(all) --admin-password-file admin")
    #expect(with.status == 0, "\(with.text)\(with.errors)")
    #expect(scene.folder.names(under: "all").count == 2)
    #expect(!(with.text + with.errors).contains("admin-secret"))
  }

  @Test func `ends where the session does, and advises nothing but to log in again`() throws {
    let scene = try Self.scene()
    scene.server.play(FaultRule(.status(401), on: "getBlob"))
    let result = try backUp(scene)
    #expect(result.status == 77, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("the session has ended"), "\(result.errors)")
    #expect(!result.errors.contains("--accept"), "\(result.errors)")
    scene.server.clearFaults()
    #expect(try backUp(scene).status == 0)
    #expect(scene.requestCount(of: "getRepo") == 1)
  }

  @Test func `sends and keeps nothing in the session of another account`() throws {
    let other = try StandInAccount("other", posts: 1)
    let mine = try StandInAccount("somebody", posts: 3, blobs: 2)
    mine.password = Self.password
    var behaviour = Behaviour()
    behaviour.logsInAs = other.did
    let scene = try NetworkScene([mine, other], behaviour)
    let result = try backUp(scene, "--private")
    #expect(result.status == 77, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("instead of \(mine.did)"), "\(result.errors)")
    #expect(!scene.folder.names().contains(NetworkScene.archive))
    #expect(scene.requestCount(of: "getPreferences") == 0)
  }

  @Test func `renews a token that has expired once for all`() throws {
    var behaviour = Behaviour()
    behaviour.accessTokenSeconds = 1
    // A refresh token that is used twice is an error on this server.
    behaviour.usedRefreshToken = .declared
    behaviour.latency = 0.1
    let scene = try Self.scene(behaviour)
    let result = try backUp(scene, "--connections 4")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
    #expect(scene.requestCount(of: "createSession") == 1)
    #expect(1...5 ~= scene.requestCount(of: "refreshSession"))
  }

  @Test(arguments: Behaviour.observed.map(\.name))
  func `says that a password is wrong`(_ name: String) throws {
    let behaviour = try #require(Behaviour.observed.first { $0.name == name }).behaviour
    let scene = try Self.scene(behaviour)
    let result = try backUp(scene, password: "not-this-one")
    #expect(result.status == 77, "\(result.text)\(result.errors)")
    #expect(!result.errors.contains("not-this-one"))
    #expect(result.errors.contains("refused the handle or the password: "), "\(result.errors)")
    #expect(result.errors.contains("hint: a backup takes an app password"), "\(result.errors)")
    #expect(scene.requestCount(of: "createSession") == 1)
  }

  @Test func `sends the password only where an account claims the handle asked for`() throws {
    let scene = try Self.scene()
    let (url, handle) = (scene.server.url, scene.account.handle)
    try scene.folder.write("password", Array("\(Self.password)\n".utf8))
    func backUp(_ name: String, _ more: String = "") throws -> Command.Result {
      try scene.command.run(
        "carpack backup \(name) --plc \(url) --dns \(url) -o archive.car.zst --login --password-file password \(more)"
      )
    }
    // Whoever rules the DNS of another handle has it lead here.
    scene.server.setTextRecords(["did=\(scene.account.did)"], for: "victim.example.com")
    let refused = try backUp("victim.example.com")
    #expect(refused.status == 12, "\(refused.text)\(refused.errors)")
    #expect(refused.errors.contains("the password was not sent"))
    #expect(scene.requestCount(of: "createSession") == 0)
    #expect(scene.requestCount == 0)
    let piece = try scene.command.run(
      "carpack fetch latest victim.example.com --plc \(url) --dns \(url) --login --password-file password"
    )
    #expect(piece.status == 12, "\(piece.text)\(piece.errors)")
    #expect(scene.requestCount(of: "createSession") == 0)
    // With a claim, a DID, or a server that the user named it is.
    #expect(try backUp(handle).status == 0)
    #expect(scene.requestCount(of: "createSession") == 1)
    #expect(try backUp(scene.account.did).status == 0)
    #expect(scene.requestCount(of: "createSession") == 2)
    let named = try backUp("victim.example.com", "--pds \(url) --accept handle")
    #expect(named.status == 0, "\(named.text)\(named.errors)")
    #expect(scene.requestCount(of: "createSession") == 3)
  }

  @Test(arguments: [
    #"{"accessJwt":"opaque-secret","refreshJwt":"other-secret"}"#,
    #"{"accessJwt":"opaque-secret","#, "opaque-secret",
  ])
  func `quotes nothing of a login that is malformed`(_ body: String) throws {
    let server = try LoopbackServer { _, response in try response.send(body) }
    let scene = try Self.scene()
    scene.account.endpoint = server.url
    let result = try backUp(scene, "--verbose --attempts 1")
    #expect(result.status == 69, "\(result.errors)")
    #expect(result.errors.contains("createSession"))
    #expect(!result.errors.contains("secret"), "\(result.errors)")
  }

  @Test func `keeps secrets to itself`() throws {
    let scene = try Self.scene()
    // Some failures, so that there is something to say.
    scene.server.play(FaultRule(.status(500), on: "getBlob", times: 3))
    scene.server.play(FaultRule(.dropped, on: "getRepo", times: 1))
    scene.server.play(
      FaultRule(.redirect(status: 302, to: "http://10.0.0.1{path}"), on: "listBlobs", times: 1))
    var spoken = ""
    for more in ["--verbose --attempts 2", "--json", ""] {
      let result = try backUp(scene, more)
      spoken += result.text + result.errors
    }
    try scene.expectWhole()
    // Tokens are JSON web tokens, which begin like this.
    let secrets = [Self.password, "eyJhbGciOi"]
    let raw = try scene.folder.read(NetworkScene.archive)
    let (car, _) = try scene.contents(scene.account.did)
    let info = try scene.command.run("carpack info --json \(NetworkScene.archive)").text
    let all = try ZstdProgram.decompress(scene.folder.file(NetworkScene.archive))
    for secret in secrets {
      #expect(!spoken.contains(secret))
      #expect(!info.contains(secret))
      for bytes in [raw, all, car] {
        #expect(Data(bytes).range(of: Data(secret.utf8)) == nil)
      }
    }
  }
}
