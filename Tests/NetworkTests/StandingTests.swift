import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// What speaks against an account is named, kept in the archive, and 12 until it is accepted.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An account that is not what it was` {
  private let scene: NetworkScene
  private let stranger = SigningKey(seed: "carpack stand-in: a stranger")

  init() throws { scene = try NetworkScene(posts: 4, blobs: 2) }

  private func backUp(_ more: String = "", status: Int32, _ line: Int = #line) throws
    -> Command.Result
  {
    let result = try scene.backUp("--attempts 1 \(more)")
    #expect(result.status == status, "line \(line): \(result.text)\(result.errors)")
    return result
  }

  private func verified(status: Int32) throws -> String {
    let result = try scene.command.run("carpack verify \(NetworkScene.archive)")
    #expect(result.status == status, "\(result.text)\(result.errors)")
    return result.text + result.errors
  }

  // MARK: The history

  @Test func `is a rollback until that is accepted, and then no more`() throws {
    _ = try backUp(status: 0)
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    _ = try backUp(status: 0)
    scene.account.goBack()
    let found = try backUp(status: 12)
    #expect(found.errors.contains("was rolled back to an earlier state"), "\(found.errors)")
    #expect(found.errors.contains("--accept rollback accepts it"))
    // Nothing has changed since, and it has not been accepted.
    _ = try backUp(status: 12)
    _ = try backUp("-q", status: 12)
    let status = try scene.command.run("carpack status \(NetworkScene.archive)")
    #expect(status.status == 12 && status.text.contains("rollback"), "\(status.text)")
    try scene.account.commit([.put(path: "a.b.c/2", record: ["x": .integer(2)])])
    _ = try backUp(status: 12)
    #expect(try verified(status: 12).contains("a rollback"))
    let accepted = try backUp("--accept rollback", status: 0)
    #expect(accepted.text.contains("accepted: "), "\(accepted.text)")
    _ = try backUp(status: 0)
    _ = try verified(status: 0)
    let all = try scene.command.run("carpack verify --json \(NetworkScene.archive)")
    #expect(all.text.contains("a rollback, which was accepted"), "\(all.text)")
    // The next one is another question.
    scene.account.goBack()
    _ = try backUp(status: 12)
    #expect(try verified(status: 12).contains("a rollback"))
  }

  @Test func `is a fork until that is accepted`() throws {
    _ = try backUp(status: 0)
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    _ = try backUp(status: 0)
    let rev = scene.account.rev
    scene.account.goBack()
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(9)])])
    try #require(scene.account.rev == rev)
    let found = try backUp(status: 12)
    #expect(found.errors.contains("two commits with one revision"), "\(found.errors)")
    _ = try backUp("--accept rollback", status: 0)
    _ = try verified(status: 0)
    let log = try scene.command.run("carpack log \(NetworkScene.archive)")
    #expect(log.text.contains("fork"), "\(log.text)")
  }

  @Test func `is older than the archive, where an older CAR is packed`() throws {
    _ = try backUp(status: 0)
    try scene.folder.write("old.car", scene.account.car())
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    _ = try backUp(status: 0)
    let packed = try scene.command.run("carpack pack old.car -o \(NetworkScene.archive)")
    #expect(packed.status == 12, "\(packed.errors)")
    #expect(packed.errors.contains("an older CAR was packed"), "\(packed.errors)")
    #expect(packed.errors.contains("--accept rollback accepts it"), "\(packed.errors)")
    _ = try verified(status: 12)
    let again = try scene.command.run(
      "carpack pack old.car -o \(NetworkScene.archive) --accept rollback")
    #expect(again.status == 0 && !again.errors.contains("rollback"), "\(again.errors)")
    _ = try verified(status: 0)
  }

  @Test func `is incomplete where its server names a newer commit than it gives out`() throws {
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    scene.server.play(FaultRule(.previousRevision, on: "getRepo", times: 3))
    for _ in 0..<2 {
      let behind = try backUp(status: 10)
      #expect(behind.text.contains("incomplete, the newest commit is missing"), "\(behind.text)")
      #expect(behind.errors.contains("the next backup asks again"), "\(behind.errors)")
    }
    let verified = try verified(status: 0)
    #expect(verified.contains("sent this older one"), "\(verified)")
    let status = try scene.command.run("carpack status \(NetworkScene.archive)")
    #expect(status.status == 10, "\(status.text)")
    #expect(try scene.command.run("carpack log \(NetworkScene.archive)").text.contains("behind"))
    _ = try backUp(status: 0)
    _ = try backUp("-q", status: 0)
    #expect(try scene.command.run("carpack status \(NetworkScene.archive)").status == 0)
  }

  @Test func `is asked for as a whole where the changes that come are of an earlier answer`() throws
  {
    _ = try backUp(status: 0)
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    scene.server.play(FaultRule(.previousRevision, on: "getRepo", times: 1))
    _ = try backUp(status: 0)
    try scene.expectWhole()
  }

  @Test func `is said to have a revision whose time is in the future`() throws {
    let found = try scene.command.run("SOURCE_DATE_EPOCH=1749992400 \(scene.line("--attempts 1"))")
    #expect(found.status == 0, "\(found.text)\(found.errors)")
    #expect(found.errors.contains("whose time is in the future"), "\(found.errors)")
    // It stays said when that time has come.
    #expect(try verified(status: 0).contains("whose time is in the future"))
  }

  @Test func `has the commits kept apart that were refused`() throws {
    _ = try backUp(status: 0)
    let archive = try scene.folder.read(NetworkScene.archive)
    let evidence =
      NetworkScene.archive.replacingOccurrences(of: ".car.zst", with: "") + ".refused.car"
    for count in 1...2 {
      try scene.account.commit([.put(path: "a.b.c/\(count)", record: ["x": .integer(1)])])
      scene.server.play(FaultRule(.badSignature, on: "getRepo", times: 4))
      let asked = scene.requestCount(of: "getRepo")
      for run in 1...2 {
        let refused = try backUp(status: 12)
        #expect(scene.requestCount(of: "getRepo") == asked + 2 * run)
        #expect(refused.errors.contains("is kept in \(evidence) as evidence"), "\(refused.errors)")
        #expect(try scene.folder.read(NetworkScene.archive) == archive)
      }
      let found = try scene.command.run("carpack inspect --json \(evidence)")
      #expect(found.text.contains("\"blockCount\":\(count),"), "\(found.text)")
    }
    // What stands there by that name, and is something else, is left alone.
    try scene.folder.write(evidence, Array("mine".utf8))
    scene.server.play(FaultRule(.badSignature, on: "getRepo", times: 2))
    #expect(try backUp(status: 12).errors.contains("could not be kept as evidence"))
    #expect(try scene.folder.read(evidence) == Array("mine".utf8))
    _ = try backUp(status: 0)
  }

  // MARK: Who it is

  @Test func `is asked about with two requests as long as nothing changes`() throws {
    _ = try backUp(status: 0)
    let before = scene.server.server.log.count
    _ = try backUp(status: 0)
    let asked = scene.server.server.log.dropFirst(before).map(\.path)
    #expect(asked.count == 2, "\(asked)")
    #expect(asked.contains { $0.hasSuffix("/log/audit") })
  }

  @Test func `is recorded anew where handle, server or key change without a commit`() throws {
    _ = try backUp(status: 0)
    scene.account.handle = "renamed.example.com"
    let renamed = try backUp(status: 0)
    #expect(
      renamed.text.contains(
        "its handle is renamed.example.com now, and was somebody.example.com"), "\(renamed.text)")
    #expect(scene.requestCount(of: "getRepo") == 1)
    try scene.server.nameKey(stranger, for: scene.account, at: "2026-06-01T00:00:00Z")
    let rotated = try backUp(status: 0)
    #expect(rotated.text.contains("its key is did:key:\(stranger.multikey) now"), "\(rotated.text)")
    #expect(try scene.backUp("-q").text.isEmpty)
    let log = try scene.command.run("carpack log \(NetworkScene.archive) --json")
    #expect(log.text.split(separator: "\n").count == 3)
    #expect(try verified(status: 0).contains("identity-proven  yes"))
  }

  @Test func `is not believed where the directory has lost an operation`() throws {
    let log = scene.account.auditLog
    scene.account.handle = "renamed.example.com"
    _ = try backUp(status: 0)
    scene.server.setAuditLog(log, for: scene.account.did)
    let result = try backUp(status: 12)
    #expect(result.errors.contains("two histories"), "\(result.errors)")
  }

  @Test func `is 12 where its handle does not lead back, until that is accepted`() throws {
    scene.server.setWellKnown("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", for: scene.account.handle)
    let line =
      "carpack backup \(scene.account.did) --plc \(scene.server.url) --dns \(scene.server.url) -o out/ --attempts 1"
    scene.server.setTextRecords(["did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"], for: scene.account.handle)
    let first = try scene.command.run(line)
    #expect(first.status == 12, "\(first.text)\(first.errors)")
    #expect(first.errors.contains("--accept handle accepts it"), "\(first.errors)")
    // It is named after the account, not after a handle that may be another account's.
    let names = scene.folder.names(under: "out")
    #expect(names.count == 1 && names.first?.hasPrefix("did") == true, "\(names)")
    #expect(try scene.command.run(line).status == 12)
    let accepted = try scene.command.run("\(line) --accept handle")
    #expect(accepted.status == 0, "\(accepted.text)\(accepted.errors)")
    #expect(try scene.command.run(line).status == 0)
    let verified = try scene.command.run("carpack verify out/")
    #expect(verified.status == 0, "\(verified.errors)")
  }

  @Test func `is no doubt any more once its handle leads back`() throws {
    scene.server.setTextRecords(["did=did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"], for: scene.account.handle)
    let line =
      "carpack backup \(scene.account.did) --plc \(scene.server.url) --dns \(scene.server.url) -o a.car.zst --attempts 1"
    #expect(try scene.command.run(line).status == 12)
    scene.server.setTextRecords(["did=\(scene.account.did)"], for: scene.account.handle)
    let mended = try scene.command.run(line)
    #expect(mended.status == 0, "\(mended.text)\(mended.errors)")
  }

  // MARK: Keys

  @Test func `is unsigned for ever where no key is known`() throws {
    nameNoKey()
    scene.server.setAuditLog("[]", for: scene.account.did)
    scene.server.play(FaultRule(.status(404), on: "/log/audit"))
    let result = try backUp(status: 0)
    #expect(result.text.contains("unsigned: no key"), "\(result.text)")
    let status = try scene.command.run("carpack status \(NetworkScene.archive)")
    #expect(status.text.contains("unsigned"), "\(status.text)")
    #expect(try verified(status: 0).contains("no key of the account was known"))
  }

  @Test func `is judged by the key it had, where its document names none any more`() throws {
    scene.server.play(FaultRule(.status(404), on: "/log/audit"))
    _ = try backUp(status: 0)
    nameNoKey()
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    let result = try backUp(status: 0)
    #expect(result.errors.contains("the last key that it named is used"), "\(result.errors)")
    _ = try verified(status: 0)
    try scene.account.commit([.put(path: "a.b.c/2", record: ["x": .integer(1)])])
    scene.server.play(FaultRule(.badSignature, on: "getRepo"))
    _ = try backUp(status: 12)
  }

  private func nameNoKey() {
    let document = scene.server.documentText(of: scene.account)
      .replacingOccurrences(of: "\"verificationMethod\"", with: "\"otherMethod\"")
    scene.server.setDocument(document, for: scene.account.did)
  }

  @Test(arguments: ["--plc-log", "--did-document"])
  func `is not packed with a document of somebody else`(_ option: String) throws {
    let other = try StandInAccount("other", posts: 1)
    try scene.folder.write("repo.car", scene.account.car())
    let server = try StandInPDS(accounts: [other])
    try scene.folder.write(
      "given.json",
      Array((option == "--plc-log" ? other.auditLog : server.documentText(of: other)).utf8))
    let result = try scene.command.run("carpack pack repo.car -o a.car.zst \(option) given.json")
    #expect(result.status == 12, "\(result.errors)")
    #expect(result.errors.contains(other.did), "\(result.errors)")
    #expect(!scene.folder.names(under: ".").contains("a.car.zst"))
  }
}
