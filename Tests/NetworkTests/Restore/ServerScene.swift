import Foundation
import StandIn
import TestSupport
import Testing

/// A server with accounts that were backed up into a folder, and a new one.
struct ServerScene {
  let directory: StandInDirectory
  let old: StandInPDS
  let new: StandInPDS
  let accounts: [StandInAccount]
  let folder: TemporaryFolder
  let command: Command
  /// The server's key, in each of the DIDs.
  let key: String

  init(count: Int, _ change: (inout Behaviour) -> Void = { _ in }) throws {
    directory = try StandInDirectory()
    accounts = try (0..<count).map { try StandInAccount("member\($0)", posts: 5, blobs: 3) }
    old = try StandInPDS(accounts: accounts)
    var behaviour = Behaviour()
    behaviour.userDomain = ".new.example"
    (behaviour.adminPassword, behaviour.invites) = ("admin-secret", [])
    change(&behaviour)
    new = try StandInPDS(behaviour: behaviour)
    (old.directory, new.directory) = (directory, directory)
    folder = try TemporaryFolder()
    command = try Command(in: folder)
    try folder.write("admin", Array("admin-secret\n".utf8))
    let made = try command.run("carpack recovery-key new -o server.key --quiet")
    key = made.text.split(separator: "\n").first.map(String.init) ?? ""
    var list = "# members\n"
    for account in accounts {
      try directory.register(account, on: old.url)
      try directory.addRotationKey(key, of: account.did, signedBy: account.rotation)
      let result = try command.run(
        "carpack backup \(account.did) --plc \(directory.url) --resolver \(old.url) -o backups/ --quiet"
      )
      #expect(result.status == 0, "\(result.text)\(result.errors)")
      list += "\(account.did) \(account.handle.prefix { $0 != "." })@example.org\n"
    }
    try folder.write("members", Array(list.utf8))
  }

  func line(_ more: String = "") -> String {
    "carpack restore --all backups/ --to \(new.url) --rotation-key server.key --admin-password-file admin --plc \(directory.url) --resolver \(old.url) --attempts 1 \(more)"
  }

  static let agreed = "--accounts members --yes identity --yes activate"

  func expectSecretsKept(_ result: Command.Result) throws {
    let journal = String(decoding: try folder.read("carpack-restore-all.jsonl"), as: UTF8.self)
    for text in [journal, result.text, result.errors] {
      #expect(!text.contains("admin-secret") && !text.contains("PRIVATE KEY"))
      #expect(!text.contains("invite-"))
    }
  }

  func expectAllMoved(location: SourceLocation = #_sourceLocation) {
    #expect(new.createdCount == accounts.count, sourceLocation: location)
    for account in accounts {
      let moved = new.accounts.first { $0.did == account.did }
      #expect(moved?.paths == account.paths, sourceLocation: location)
      #expect(moved?.status == .active, sourceLocation: location)
      #expect(
        Set(moved?.blobs.keys.map { $0 } ?? []) == account.referencedBlobs,
        sourceLocation: location)
    }
  }
}

extension ServerScene {
  /// Adds an account whose document is on a website, and backs it up; returns the website.
  func addWebAccount() throws -> (site: StandInPDS, account: StandInAccount) {
    let site = try StandInPDS()
    let did = "did:web:localhost%3A\(site.server.port)"
    let account = try StandInAccount("webby", posts: 5, blobs: 3, did: did)
    old.add(account)
    site.setDocument(old.documentText(of: account), for: did)
    directory.setWeb(did, key: "did:key:" + account.key.multikey, server: old.url)
    let result = try command.run(
      "carpack backup \(did) --plc \(directory.url) --resolver \(old.url) -o backups/ --quiet")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    var list = try folder.read("members")
    list += Array("\(did) webby@example.org\n".utf8)
    try folder.write("members", list)
    return (site, account)
  }
}
