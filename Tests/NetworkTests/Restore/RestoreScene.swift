import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// Two servers and a directory, an account on the one that is to come to the other, and the archive
/// of it.
struct RestoreScene {
  static let password = "old-secret-password"
  static let newPassword = "new-secret-password"
  static let archive = "archive.car.zst"

  let directory: StandInDirectory
  let old: StandInPDS
  let new: StandInPDS
  let account: StandInAccount
  let folder: TemporaryFolder
  let command: Command

  init(
    posts: Int = 20, blobs: Int = 10, blobSize: Int = 3000, large: [Int] = [],
    _ behaviour: Behaviour = Behaviour()
  ) throws {
    directory = try StandInDirectory()
    account = try StandInAccount(
      "somebody", posts: posts, blobs: blobs, blobSize: blobSize, large: large)
    account.password = Self.password
    account.appPassword = "app-password"
    account.email = "somebody@example.com"
    old = try StandInPDS(accounts: [account])
    var newBehaviour = behaviour
    newBehaviour.userDomain = ".new.example"
    newBehaviour.resolvesDeactivated = false
    new = try StandInPDS(behaviour: newBehaviour)
    (old.directory, new.directory) = (directory, directory)
    try directory.register(account, on: old.url)
    folder = try TemporaryFolder()
    command = try Command(in: folder)
    try folder.write("old", Array("\(Self.password)\n".utf8))
    try folder.write("new", Array("\(Self.newPassword)\n".utf8))
  }

  /// How often the new server was told to do something; what only asks whether it could does not
  /// count.
  func calls(of method: String, on server: StandInPDS? = nil) -> Int {
    (server ?? new).server.log.count { $0.path.hasSuffix(method) && $0.method == "POST" }
  }

  /// What has the command ask these servers for everything.
  var flags: String { "--plc \(directory.url) --resolver \(old.url)" }

  /// Backs the account up, or continues an earlier backup.
  func backUp(_ more: String = "") throws {
    let result = try command.run(
      "carpack backup \(account.did) \(flags) -o \(Self.archive) \(more)")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }

  /// The line that moves the account, except for what is agreed to.
  func line(_ more: String = "", login: Bool = true) -> String {
    "carpack restore \(Self.archive) --to \(new.url) \(flags) --new-password-file new \(login ? "--login --password-file old" : "") \(more)"
  }

  func restore(_ more: String = "", login: Bool = true) throws -> Command.Result {
    try command.run(line(more, login: login))
  }

  static let agreed = "--yes identity --yes activate"

  /// The account on the new server.
  var moved: StandInAccount? { new.accounts.first { $0.did == account.did } }

  /// The operation that holds.
  func operation() throws -> IPLDValue { try #require(directory.current(account.did)) }

  /// Writes a key of the account owner's own, adds it to the account, and answers it as
  /// `did:key:…`.
  func addRecoveryKey(_ file: String = "recovery.key") throws -> String {
    let made = try command.run("carpack recovery-key new -o \(file) --quiet")
    #expect(made.status == 0, "\(made.text)\(made.errors)")
    let key = made.text.split(separator: "\n").first.map(String.init) ?? ""
    try directory.addRotationKey(key, of: account.did, signedBy: account.rotation)
    return key
  }

  /// Expects the new server to have the account as it was, with all blobs but some.
  func expectMoved(
    isActive: Bool = true, without missing: Set<CID> = [],
    location: SourceLocation = #_sourceLocation
  ) throws {
    let moved = try #require(moved, sourceLocation: location)
    #expect(moved.paths == account.paths, sourceLocation: location)
    #expect(moved.head == account.head, sourceLocation: location)
    #expect(
      Set(moved.blobs.keys) == account.referencedBlobs.subtracting(missing),
      sourceLocation: location)
    #expect((moved.status == .active) == isActive, sourceLocation: location)
    #expect(new.createdCount == 1, sourceLocation: location)
  }

  /// Expects no secret in any file of the folder but those that were given, nor in what was said.
  ///
  /// A token is looked for with the dot after its first part: the three letters that it begins with
  /// stand in one of some thousand signatures, too.
  func expectNoSecret(in result: Command.Result, location: SourceLocation = #_sourceLocation) throws
  {
    var texts = ["what was printed": result.text, "what was said": result.errors]
    for name in folder.names(under: ".") where name.hasSuffix(".json") {
      texts[name] = String(decoding: try folder.read(name), as: UTF8.self)
    }
    let secrets = [Self.password, Self.newPassword, "app-password", "PRIVATE KEY"]
    for (place, text) in texts {
      for secret in secrets {
        #expect(!text.contains(secret), "\(place)", sourceLocation: location)
      }
      #expect(!text.contains(/eyJ[A-Za-z0-9_-]+\./), "\(place)", sourceLocation: location)
    }
  }
}
