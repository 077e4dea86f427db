import Archive
import Foundation
import StandIn
import SystemPackage
import TestSupport
import Testing

/// Backups that are encrypted on this machine, into files and into buckets.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up into a sealed archive` {
  private static let password = "horse-battery-staple-secret"

  /// An account, a store, and a key.
  private struct Scene {
    private(set) var store: StoreScene
    let recipient: String
    /// What the account says, and the server keeps for its owner: none of it may be in a file.
    let secrets: [String]

    var network: NetworkScene { store.scene }
    var folder: TemporaryFolder { store.folder }

    init() throws {
      store = try StoreScene(posts: 4, blobs: 2, large: [6 << 20], times: 0)
      var random = SeededGenerator(printing: 0x5ec7_0001)
      secrets = (0..<40).map { _ in "secret-" + random.bytes(16).map { "\($0)" }.joined() }
      for (number, secret) in secrets.dropFirst(20).enumerated() {
        try store.scene.account.commit([
          store.scene.account.post("3lkxag2qhe\(100 + number)", secret, showing: [])
        ])
      }
      let bookmarks = secrets.prefix(20).map { #"{"note":"\#($0)"}"# }.joined(separator: ",")
      store.scene.account.password = `Backing up into a sealed archive`.password
      store.scene.account.privatePages = [
        "app.bsky.bookmark.getBookmarks": [#"{"bookmarks":[\#(bookmarks)]}"#]
      ]
      try store.folder.write(
        "password", Array("\(`Backing up into a sealed archive`.password)\n".utf8))
      try FileManager.default.createDirectory(
        atPath: store.folder.file("tmp"), withIntermediateDirectories: true)
      // Folders of its own for keys and temporary files.
      store.environment = [
        "XDG_CONFIG_HOME": store.folder.file("config"), "TMPDIR": store.folder.file("tmp"),
      ]
      let made = try store.run("carpack key new -o key.age")
      #expect(made.status == 0, "\(made.errors)")
      recipient = made.text.trimmingCharacters(in: .newlines)
    }

    func post(_ number: Int) throws {
      let account = network.account
      try account.commit([account.post("3lkxag2qhf\(100 + number)", "one more", showing: [])])
    }
  }

  @Test func `asks for a key before anything is asked of a server`() throws {
    let scene = try Scene()
    try scene.store.expect(scene.network.line("--recipient \(scene.recipient)"))
    try scene.post(0)
    scene.network.server.server.forgetLog()
    try scene.store.expect(scene.network.line("--recipient \(scene.recipient)"), 77, "sealed")
    #expect(scene.network.server.server.log.isEmpty)
    try scene.store.expect(scene.network.line("--age-identity key.age"), 0, "added")
    try scene.store.expect("carpack verify \(NetworkScene.archive) --age-identity key.age")
  }

  @Test func `skips a sealed archive of someone else, and names it`() throws {
    let scene = try Scene()
    let account = scene.network.account
    let seal = "carpack pack -q out.car -o new/pass.car.zst --recipient \(scene.recipient)"
    try scene.store.expect(scene.network.line())
    try scene.store.expect("carpack extract --car -o out.car \(NetworkScene.archive)")
    try FileManager.default.createDirectory(
      atPath: scene.folder.file("new"), withIntermediateDirectories: false)
    try scene.store.expect(seal, 10)
    let words = "note: new/pass.car.zst: the archive is sealed, and no key was given"
    let line = "carpack backup \(account.handle) \(scene.network.flags) -o new"
    try scene.store.expect(line, 0, words, "--age-identity FILE")
    #expect(scene.folder.names(under: "new").contains("\(account.handle).car.zst"))
    // An archive that is found by the handle is enough.
    let again = try scene.store.run(line)
    #expect(again.status == 0 && !again.errors.contains("sealed"), "\(again.errors)")
    // So is one that is found by looking for the account.
    let byDID = try scene.store.run(line.replacing(account.handle, with: account.did))
    #expect(byDID.status == 0 && !byDID.errors.contains("sealed"), "\(byDID.errors)")
  }

  @Test(arguments: [true, false], [true, false])
  func `makes no second archive beside a sealed one that may be the account's`(
    isNamedByDID: Bool, isAskedByDID: Bool
  ) throws {
    let scene = try Scene()
    let account = scene.network.account
    let file = "new/\(isNamedByDID ? account.did : account.handle).car.zst"
    try FileManager.default.createDirectory(
      atPath: scene.folder.file("new"), withIntermediateDirectories: false)
    try scene.store.expect(
      scene.network.line("--recipient \(scene.recipient)")
        .replacing(NetworkScene.archive, with: file))
    let name = isAskedByDID ? account.did : account.handle
    for more in ["", "--dry-run"] {
      try scene.store.expect(
        "carpack backup \(name) \(scene.network.flags) -o new \(more)", 77,
        "error: \(file): the archive is sealed, and no key was given")
    }
    #expect(scene.folder.names(under: "new").filter { $0.hasSuffix(".car.zst") }.count == 1)
  }

  @Test(arguments: ["backup", "fill", "pack"])
  func `ends what was killed after its footer, and before its table`(_ verb: String) throws {
    let scene = try Scene()
    let line = scene.network.line("--age-identity key.age")
    try scene.store.expect(scene.network.line("--recipient \(scene.recipient)"))
    try scene.post(0)
    try scene.store.expect(line)
    try scene.store.expect(
      "carpack extract --age-identity key.age --car -o repo.car \(NetworkScene.archive)")
    try scene.store.expect(
      "carpack extract --age-identity key.age --blobs -d out \(NetworkScene.archive)")
    let whole = try scene.folder.read(NetworkScene.archive)
    // The table comes last, and one that is torn is none.
    try scene.folder.write(NetworkScene.archive, whole.dropLast())
    let verify = "carpack verify --age-identity key.age \(NetworkScene.archive)"
    try scene.store.expect(verify, 10, "unfinished")
    switch verb {
    case "backup": try scene.store.expect(line)
    case "fill":
      try scene.store.expect("carpack fill --age-identity key.age \(NetworkScene.archive)")
    default:
      try scene.store.expect(
        "carpack pack --age-identity key.age repo.car --blobs out/*/blobs -o \(NetworkScene.archive)"
      )
    }
    try scene.store.expect(verify)
    try scene.store.expect("carpack verify \(NetworkScene.archive)", 0, "undamaged")
  }

  @Test(arguments: [1, 300, 70_000])
  func `is repaired in place where bytes were taken out, and filled again`(_ count: Int) throws {
    let scene = try Scene()
    let (archive, key) = (NetworkScene.archive, "--age-identity key.age")
    try scene.store.expect(scene.network.line("--recipient \(scene.recipient) --parity 0"))
    try scene.post(0)
    try scene.store.expect(scene.network.line(key))
    var bytes = try scene.folder.read(archive)
    bytes.removeSubrange(bytes.count / 2..<bytes.count / 2 + count)
    try scene.folder.write(archive, bytes)
    try scene.store.expect("carpack verify \(key) \(archive)", 11)
    try scene.store.expect("carpack repair \(key) \(archive)", 11, "damaged")
    try scene.store.expect(scene.network.line(key))
    try scene.store.expect("carpack verify \(key) \(archive)")
    try scene.store.expect("carpack verify \(archive)", 0, "undamaged")
    #expect(scene.folder.names().allSatisfy { !$0.contains("partial") })
  }

  /// Bytes that are put in, or taken out if there are fewer than none.
  @Test(arguments: [-30_000, -300, -1, 1, 70_000])
  func `heals where bytes were put in or taken out`(_ count: Int) throws {
    let scene = try Scene()
    let (archive, key) = (NetworkScene.archive, "--age-identity key.age")
    try scene.store.expect(scene.network.line("--recipient \(scene.recipient) --parity 10"))
    try scene.post(0)
    try scene.store.expect(scene.network.line(key))
    try scene.store.expect("carpack unseal \(key) \(archive) -o before.car.zst")
    var bytes = try scene.folder.read(archive)
    let place = bytes.count / 2
    if count < 0 {
      bytes.removeSubrange(place..<place - count)
    } else {
      bytes.insert(contentsOf: repeatElement(7, count: count), at: place)
    }
    try scene.folder.write(archive, bytes)
    try scene.store.expect("carpack verify \(archive)", 11)
    try scene.store.expect("carpack repair \(key) \(archive)", 0, "healed from parity")
    try scene.store.expect("carpack unseal \(key) \(archive) -o after.car.zst")
    #expect(try scene.folder.read("after.car.zst") == scene.folder.read("before.car.zst"))
    try scene.store.expect("carpack verify \(archive)", 0, "undamaged")
  }

  @Test func `is decrypted as far as it is left, and says what is lost`() throws {
    let scene = try Scene()
    let (archive, key) = (NetworkScene.archive, "--age-identity key.age")
    try scene.store.expect(scene.network.line("--recipient \(scene.recipient)"))
    let first = try scene.folder.read(archive)
    try scene.post(0)
    try scene.store.expect(scene.network.line(key))
    let both = try scene.folder.read(archive)
    let hasAttributes = FileAttribute(name: "user.carpack.test").write(
      "x", to: FilePath(scene.folder.file(archive)))
    let file = try FileHandle(forUpdating: URL(filePath: scene.folder.file(archive)))
    try file.truncate(atOffset: UInt64(first.count + 400))
    try file.close()
    let status: Int32 = hasAttributes ? 11 : 0
    try scene.store.expect("carpack unseal \(key) \(archive) -o cut.car.zst", status)
    try scene.store.expect("carpack verify cut.car.zst")
    // Without its table nothing of it is lost.
    try scene.folder.write(archive, Array(both.dropLast(10)))
    try scene.store.expect("carpack unseal \(key) \(archive) -o whole.car.zst")
    try scene.store.expect("carpack repair \(key) \(archive)", 0, "their table written again")
    try scene.store.expect("carpack repair \(key) \(archive)", 0, "nothing to repair")
  }

  @Test func `goes on with the key that was kept, and with none where none is`() throws {
    let scene = try Scene()
    let line = scene.network.line("--recipient \(scene.recipient)")
    try scene.store.expect("\(line) --remember-key")
    try scene.post(0)
    try scene.store.expect(line)
    let keys = try FileManager.default.contentsOfDirectory(
      atPath: scene.folder.file("config/carpack/keys"))
    #expect(keys.count == 1)
    for name in keys {
      let path = scene.folder.file("config/carpack/keys/\(name)")
      let facts = try FileManager.default.attributesOfItem(atPath: path)
      #expect(facts[.posixPermissions] as? Int == 0o600)
      try FileManager.default.removeItem(atPath: path)
    }
    try scene.post(1)
    try scene.store.expect(line, 77)
    // An existing archive is opened with the owner's key once, and then without.
    try scene.store.expect("\(line) --age-identity key.age --remember-key")
    try scene.post(2)
    try scene.store.expect(line)
  }

  @Test func `warns of private data where the archive is not sealed, once`() throws {
    let scene = try Scene()
    let login = "--login --password-file password --attempts 1 --private"
    try scene.store.expect(scene.network.line("\(login) --recipient \(scene.recipient)"))
    let words = "not encrypted"
    let sealed = try scene.store.run(scene.network.line("\(login) --age-identity key.age"))
    #expect(!sealed.errors.contains(words), "\(sealed.errors)")
    let plain = scene.network.line(login).replacing(NetworkScene.archive, with: "plain.car.zst")
    try scene.store.expect(plain, 0, words)
    try scene.post(0)
    let again = try scene.store.run(plain)
    #expect(again.status == 0 && !again.errors.contains(words), "\(again.errors)")
  }

  @Test func `goes into a bucket, is gone on with, pushed and pulled, and is the same everywhere`()
    throws
  {
    let scene = try Scene()
    let place = "s3://\(StandInStore.bucket)/sealed/a.car.zst"
    let line = scene.network.line("--recipient \(scene.recipient) --age-identity key.age")
      .replacing("-o \(NetworkScene.archive)", with: "-o \(place)")
    try scene.store.expect(line)
    for number in 0..<3 {
      try scene.post(number)
      let before = try #require(scene.store.store["sealed/a.car.zst"])
      try scene.store.expect(line, 0, "added")
      let after = try #require(scene.store.store["sealed/a.car.zst"])
      #expect(after.starts(with: before) && after.count > before.count)
    }
    try scene.store.expect(line, 0, "up to date")
    try scene.store.expect("carpack verify \(place) --age-identity key.age")
    try scene.store.expect("carpack verify \(place)", 0, "sealed")
    try scene.store.expect("carpack pull \(place) copy.car.zst")
    let copy = try scene.folder.read("copy.car.zst")
    #expect(copy == scene.store.store["sealed/a.car.zst"])
    try scene.store.expect("carpack verify copy.car.zst --age-identity key.age")
    // What is pushed is what lies here, piece for piece.
    let other = "s3://\(StandInStore.bucket)/sealed/b.car.zst"
    try scene.store.expect("carpack push copy.car.zst \(other)", 0, "sent")
    #expect(scene.store.store["sealed/b.car.zst"] == copy)
    try scene.post(9)
    let local = scene.network.line("--age-identity key.age")
      .replacing(NetworkScene.archive, with: "copy.car.zst")
    try scene.store.expect(local)
    try scene.store.expect("carpack push copy.car.zst \(other)", 0, "appended")
    #expect(try scene.store.store["sealed/b.car.zst"] == scene.folder.read("copy.car.zst"))
    #expect(scene.store.store.openUploads == 0)
  }

  @Test func `has in each copy the keys that were changed most often, whichever way it goes`()
    throws
  {
    let scene = try Scene()
    let place = "s3://\(StandInStore.bucket)/sealed/a.car.zst"
    let line = scene.network.line("--recipient \(scene.recipient) --age-identity key.age")
    try scene.store.expect(line)
    let file = NetworkScene.archive
    let other = try scene.store.run("carpack key new -o other.age").text
      .trimmingCharacters(in: .newlines)
    try scene.store.expect("carpack key add \(file) \(other) --age-identity key.age")
    try scene.store.expect("carpack push \(file) \(place)", 0, "sent")
    try scene.store.expect("carpack verify \(place) --age-identity other.age")
    // Removed here: it stays so, and the store has it too.
    try scene.store.expect("carpack key remove \(file) \(other) --age-identity key.age")
    try scene.store.expect("carpack pull \(place) \(file)", 0, "that counts")
    try scene.store.expect("carpack key list \(file) --age-identity other.age", 77)
    let pushed = try scene.store.expect(
      "carpack push \(file) \(place) --json", 0, "\"keys\":\"kept\"")
    #expect(OutputSchema.faults(in: pushed.text).isEmpty)
    #expect(try scene.store.store["sealed/a.car.zst"] == scene.folder.read(file))
    // Changed in another copy, which was pushed: the next push takes it over.
    try scene.folder.write("copy.car.zst", scene.folder.read(file))
    try scene.store.expect("carpack key add copy.car.zst \(other) --age-identity key.age")
    try scene.store.expect("carpack push copy.car.zst \(place)", 0, "that counts")
    try scene.store.expect("carpack push \(file) \(place)", 0, "that counts")
    #expect(try scene.folder.read(file) == scene.folder.read("copy.car.zst"))
    #expect(try scene.store.store["sealed/a.car.zst"] == scene.folder.read(file))
    try scene.store.expect("carpack push \(file) \(place)", 0, "up to date")
  }

  @Test func `leaves none of forty secrets in a file, a message or an argument`() throws {
    let scene = try Scene()
    let place = "s3://\(StandInStore.bucket)/sealed/a.car.zst"
    let login = "--login --password-file password --attempts 1 --private"
    let backup = scene.network.line(
      "\(login) --recipient \(scene.recipient) --remember-key --verbose")
    let far = backup.replacing("-o \(NetworkScene.archive)", with: "-o \(place)")
    var said = ""
    for number in 0..<3 {
      for line in [backup, far] { said += try scene.store.expect(line).errors }
      try scene.post(number)
    }
    let file = NetworkScene.archive
    for line in [
      "carpack verify \(file)", "carpack verify \(place)", "carpack info \(file)",
      "carpack compact \(file)", "carpack repair \(file)", "carpack protect \(file) --parity 5%",
      "carpack merge \(file) \(place) -o merged.car.zst", "carpack ls \(file) --json",
    ] {
      let result = try scene.store.expect(line)
      said += result.text + result.errors
    }
    // The password and the key are in their own files, which are meant to hold them.
    let key = String(decoding: try scene.folder.read("key.age"), as: UTF8.self)
      .split(separator: "\n").filter { !$0.hasPrefix("#") }.joined()
    let secrets = scene.secrets + [`Backing up into a sealed archive`.password, key]
    for secret in secrets { #expect(!said.contains(secret)) }
    let own = ["password", "key.age"]
    var searched = 0
    for name in try FileManager.default.subpathsOfDirectory(atPath: scene.folder.path) {
      let path = scene.folder.file(name)
      let facts = try FileManager.default.attributesOfItem(atPath: path)
      guard !own.contains(name), facts[.type] as? FileAttributeType == .typeRegular else {
        continue
      }
      searched += 1
      let content = try Data(contentsOf: URL(filePath: path))
      for secret in secrets {
        #expect(content.range(of: Data(secret.utf8)) == nil, "a secret in \(name)")
      }
    }
    #expect(searched >= 3)
    // They are in it anyway, for who has the key.
    for secret in scene.secrets[20..<23] {
      try scene.store.expect("carpack find \(secret) \(file)")
    }
  }
}
