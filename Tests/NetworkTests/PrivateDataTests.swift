import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up what is the owner's alone` {
  private static let password = "horse-battery-staple-secret"
  /// What must never be written unless it was requested.
  private static let secret = "only-for-my-own-eyes"
  private static let mutes = "app.bsky.graph.getMutes"
  private static let chat = "chat.bsky.actor.exportAccountData"
  private static let preferences = "app.bsky.actor.getPreferences"

  /// An account with something private of every kind.
  private static func pages() -> [String: [String]] {
    [
      // 0.5 is not a value of the data model, and the owner's anyway.
      preferences: [#"{"preferences":[{"$type":"app.bsky#x","weight":0.5,"is":"\#(secret)"}]}"#],
      mutes: [
        #"{"mutes":[{"did":"did:plc:a"}],"cursor":"1"}"#,
        #"{"mutes":[{"did":"did:plc:b"}],"cursor":"2"}"#, #"{"mutes":[]}"#,
      ],
      "app.bsky.graph.getListMutes": [#"{"lists":[]}"#],
      "app.bsky.graph.getListBlocks": [#"{"lists":[{"uri":"at://x"}],"cursor":""}"#],
      "app.bsky.bookmark.getBookmarks": [#"{"bookmarks":[{"note":"\#(secret)"}]}"#],
      "app.bsky.draft.getDrafts": [#"{"drafts":[]}"#],
      "app.bsky.notification.getPreferences": [#"{"preferences":{"chat":{"push":true}}}"#],
      "app.bsky.notification.listActivitySubscriptions": [#"{"subscriptions":[]}"#],
      // More than fits into one block, and not very compressible.
      chat: [
        (0..<50_000).map { #"{"message":"\#(secret)","number":\#($0 &* 2_654_435_761)}"# }
          .joined(separator: "\n")
      ],
    ]
  }

  private static func scene(_ pages: [String: [String]] = pages()) throws -> NetworkScene {
    let scene = try NetworkScene(posts: 6, blobs: 4)
    scene.account.password = password
    scene.account.privatePages = pages
    try scene.folder.write("password", Array("\(password)\n".utf8))
    return scene
  }

  private func backUp(_ scene: NetworkScene, _ more: String = "--private") throws -> Command.Result
  {
    try scene.command.run(scene.line("--login --password-file password --attempts 1 \(more)"))
  }

  private func mode(_ scene: NetworkScene, _ name: String) throws -> Int {
    let facts = try FileManager.default.attributesOfItem(atPath: scene.folder.file(name))
    return try #require(facts[.posixPermissions] as? Int)
  }

  /// The private files of the account, by their names.
  private func extracted(
    _ scene: NetworkScene, _ archive: String = NetworkScene.archive, status: Int32 = 0
  ) throws -> [String: [UInt8]] {
    let name = "private-\(UUID().uuidString)"
    let result = try scene.command.run("carpack extract --private -d \(name) \(archive)")
    #expect(result.status == status, "\(result.errors)")
    var files: [String: [UInt8]] = [:]
    for file in scene.folder.names(under: name)
    where file.contains("/private/") && !file.contains("getRecommendedDidCredentials") {
      #expect(try mode(scene, "\(name)/\(file)") == 0o600)
      let folder = "\(name)/\(scene.account.did)/private"
      #expect(try mode(scene, folder) == 0o700)
      files[String(file.split(separator: "/").last ?? "")] = try scene.folder.read(
        "\(name)/\(file)")
    }
    return files
  }

  /// What is to come back of some pages.
  private static func files(_ pages: [String: [String]] = pages()) -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for (method, answers) in pages {
      let answers = answers.enumerated().filter { $0.offset == 0 || !$0.element.contains("[]") }
      for (index, answer) in answers {
        let number = answers.count > 1 ? "-\(index + 1)" : ""
        files["\(method)\(number).json\(method == chat ? "l" : "")"] = Array(answer.utf8)
      }
    }
    return files
  }

  @Test func `gives it back as it was received, to the owner alone`() throws {
    let scene = try Self.scene()
    let result = try backUp(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(try mode(scene, NetworkScene.archive) == 0o600)
    #expect(try extracted(scene) == Self.files())
    try scene.expectWhole()
    let info = try scene.command.run("carpack info \(NetworkScene.archive)")
    #expect(info.text.contains("private"))
    for method in Self.pages().keys { #expect(info.text.contains(method), "\(info.text)") }
    let json = try scene.command.run("carpack info --json \(NetworkScene.archive)")
    #expect(OutputSchema.faults(in: json.text).isEmpty)
    #expect(json.text.contains(#""private":[{"endpoint":"app.bsky.actor.getPreferences""#))
  }

  @Test(.enabled(if: IndependentReader.isPresent, Comment(rawValue: IndependentReader.absence)))
  func `is read by a reader that knows the document alone`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    for (method, answers) in Self.pages() where method != Self.mutes {
      let given = try IndependentReader.run(
        ["private", scene.folder.file(NetworkScene.archive), method])
      #expect(given.status == 0)
      #expect(given.output == Array(answers.joined().utf8), "\(method)")
    }
  }

  @Test func `leaves it out of everything else`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    let result = try scene.command.run("carpack extract --all -d all \(NetworkScene.archive)")
    #expect(result.status == 0)
    #expect(result.errors.contains("private data is left out: --private"), "\(result.errors)")
    #expect(try !containsSecret(scene, under: "all"))
    let both = try scene.command.run(
      "carpack extract --all --private -d both \(NetworkScene.archive)")
    #expect(both.status == 0)
    #expect(try containsSecret(scene, under: "both"))
  }

  private func containsSecret(_ scene: NetworkScene, under folder: String) throws -> Bool {
    try scene.folder.names(under: folder).contains { name in
      let text = String(decoding: try scene.folder.read("\(folder)/\(name)"), as: UTF8.self)
      return text.contains(Self.secret)
    }
  }

  @Test func `lets nothing out of a damaged archive either`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    let whole = try scene.folder.read(NetworkScene.archive)
    for place in 1..<24 {
      var bytes = whole
      let middle = whole.count * place / 24
      for index in max(0, middle - 40)..<min(whole.count, middle + 40) { bytes[index] ^= 0xff }
      try scene.folder.write("damaged.car.zst", bytes)
      let name = "damaged-\(place)"
      _ = try scene.command.run("carpack extract --all -d \(name) damaged.car.zst")
      guard FileManager.default.fileExists(atPath: scene.folder.file(name)) else { continue }
      #expect(try !containsSecret(scene, under: name), "damaged at \(middle)")
    }
  }

  @Test func `writes nothing when nothing has changed, and keeps what it has`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    let first = try scene.folder.read(NetworkScene.archive)
    let again = try backUp(scene)
    #expect(again.status == 0)
    #expect(again.text.contains("up to date"), "\(again.text)")
    #expect(try scene.folder.read(NetworkScene.archive) == first)
    // A backup without --private, of a repository that has changed, loses nothing of it.
    try scene.account.commit([.put(path: "app.bsky.feed.post/new", record: ["text": .string("x")])])
    #expect(try backUp(scene, "").status == 0)
    #expect(try scene.folder.read(NetworkScene.archive) != first)
    #expect(try extracted(scene) == Self.files())
    #expect(try mode(scene, NetworkScene.archive) == 0o600)
  }

  @Test func `is added to an archive that others could read`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene, "").status == 0)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: scene.folder.file(NetworkScene.archive))
    // Neither an unchanged account nor a recent backup is a reason not to ask.
    let result = try backUp(scene, "--private --max-age 1d")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try mode(scene, NetworkScene.archive) == 0o600)
    #expect(try extracted(scene) == Self.files())
    let log = try scene.command.run("carpack log \(NetworkScene.archive) --json")
    #expect(log.text.split(separator: "\n").count == 2)
    let skipped = try backUp(scene, "--private --max-age 1d")
    #expect(skipped.text.contains("recent"), "\(skipped.text)")
  }

  @Test func `names what the server does not give, which is no error`() throws {
    var pages = Self.pages()
    pages[Self.chat] = nil
    let scene = try Self.scene(pages)
    let result = try backUp(scene)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains(Self.chat), "\(result.errors)")
    #expect(try extracted(scene) == Self.files(pages))
    let info = try scene.command.run("carpack info \(NetworkScene.archive)")
    #expect(
      info.text.contains("\(Self.chat): nothing, the server does not provide it"), "\(info.text)")
    // Later it does.
    scene.account.privatePages = Self.pages()
    #expect(try backUp(scene).status == 0)
    #expect(try extracted(scene) == Self.files())
  }

  @Test func `says once what the server does not give, and that there is nothing to extract`()
    throws
  {
    let scene = try Self.scene([:])
    scene.server.behaviour.lacks = ["com.atproto.identity.getRecommendedDidCredentials"]
    let result = try backUp(scene)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.split(separator: "\n").count { $0.contains("does not give") } == 1)
    let again = try backUp(scene)
    #expect(again.status == 0 && !again.errors.contains("does not give"), "\(again.errors)")
    let extracted = try scene.command.run(
      "carpack extract --private -d out \(NetworkScene.archive)")
    #expect(extracted.errors.contains("there is no private data"), "\(extracted.errors)")
    let all = try scene.command.run("carpack extract -d all \(NetworkScene.archive)")
    #expect(!all.errors.contains("private"), "\(all.errors)")
  }

  @Test func `is not asked for with a password that is refused`() throws {
    let scene = try Self.scene()
    try scene.folder.write("password", Array("another\n".utf8))
    let result = try backUp(scene)
    #expect(result.status == 77, "\(result.text)\(result.errors)")
    #expect(scene.requestCount(of: "createSession") == 1)
  }

  @Test(arguments: [
    Fault.status(500), .dropped, .captivePortal, .deepJSON(depth: 10_000),
    .distorted(.cut(at: 0.5)),
  ])
  func `keeps what it has when something does not come`(_ fault: Fault) throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    scene.account.privatePages[Self.preferences] = [#"{"preferences":[]}"#]
    scene.server.play(FaultRule(fault, on: "getMutes"))
    let result = try backUp(scene)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("getMutes"), "\(result.errors)")
    #expect(result.text.contains("private data is incomplete"), "\(result.text)")
    var pages = Self.pages()
    pages[Self.preferences] = [#"{"preferences":[]}"#]
    #expect(try extracted(scene) == Self.files(pages))
    #expect(try scene.command.run("carpack verify \(NetworkScene.archive)").status == 0)
    scene.server.clearFaults()
    #expect(try backUp(scene).status == 0)
  }

  @Test(arguments: [
    Fault.status(502), .status(500), .tooManyRequests(retryAfter: 3600), .silent, .captivePortal,
    .garbage, .dropped,
  ])
  func `costs no repository and no blob when it does not come`(_ fault: Fault) throws {
    let scene = try Self.scene()
    scene.server.play(FaultRule(fault, on: "getMutes"))
    let clock = ContinuousClock()
    let begin = clock.now
    let result = try backUp(scene, "--private --timeout 2")
    #expect(clock.now - begin < .seconds(30))
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains(Self.mutes), "\(result.errors)")
    try scene.expectWhole()
    let info = try scene.command.run("carpack info \(NetworkScene.archive)")
    #expect(info.text.contains("\(Self.mutes): nothing, it could not be fetched"), "\(info.text)")
    var pages = Self.pages()
    pages[Self.mutes] = nil
    #expect(try extracted(scene, status: 10) == Self.files(pages))
    // Private data is requested when all else has arrived.
    let paths = scene.server.server.log.map(\.path)
    let last = try #require(paths.lastIndex { $0.hasSuffix("getBlob") })
    let first = try #require(paths.firstIndex { $0.hasSuffix(Self.preferences) })
    #expect(last < first)
    scene.server.clearFaults()
    #expect(try backUp(scene).status == 0)
    #expect(try extracted(scene) == Self.files())
  }

  @Test func `keeps what was saved when it is stopped meanwhile, and at once`() throws {
    let scene = try Self.scene()
    scene.server.play(FaultRule(.silent, on: "getMutes"))
    let running = try scene.command.start(
      scene.line("--login --password-file password --private"))
    while running.isRunning, scene.requestCount(of: Self.mutes) == 0 { pause(0.01) }
    let clock = ContinuousClock()
    let begin = clock.now
    running.signal(15)
    let result = try running.wait()
    #expect(clock.now - begin < .seconds(2))
    #expect(result.status == 143, "\(result.text)\(result.errors)")
    // What is public counted before.
    try scene.expectWhole()
    scene.server.clearFaults()
    #expect(try backUp(scene).status == 0)
    #expect(scene.requestCount(of: "getRepo") == 1)
    #expect(scene.server.blobRequests.values.allSatisfy { $0 == 1 })
    try scene.expectWhole()
    #expect(try extracted(scene) == Self.files())
  }

  @Test func `goes on behind empty pages, and leaves them out`() throws {
    var pages = Self.pages()
    let empty = (1..<4).map { #"{"mutes":[],"cursor":"\#($0)"}"# }
    let last = #"{"mutes":[{"did":"did:plc:a"}]}"#
    for list in [
      empty + [last], [last.dropLast() + #","cursor":"1"}"#] + empty.dropFirst() + [last],
    ] {
      pages[Self.mutes] = list
      let scene = try Self.scene(pages)
      #expect(try backUp(scene).status == 0)
      let files = try extracted(scene).filter { $0.key.hasPrefix(Self.mutes) }
      // The first page is kept, whatever it holds.
      #expect(
        files.values.map { String(decoding: $0, as: UTF8.self) }.sorted()
          == [list[0], last].sorted())
    }
  }

  @Test(arguments: [0, 1])
  func `does not follow a list that has no end`(_ cursor: Int) throws {
    var pages = Self.pages()
    pages[Self.mutes] = [
      #"{"mutes":[{"did":"did:plc:a"}],"cursor":"\#(cursor)"}"#,
      #"{"mutes":[{"did":"did:plc:b"}],"cursor":"0"}"#,
    ]
    let scene = try Self.scene(pages)
    let result = try backUp(scene)
    #expect(result.status == 10, "\(result.errors)")
    #expect(
      result.errors.contains("the list broke off after \(cursor + 2) entries"), "\(result.errors)")
    #expect(scene.requestCount(of: Self.mutes) < 5)
    // What came is kept, and is said not to be all.
    let info = try scene.command.run("carpack info \(NetworkScene.archive)")
    #expect(info.text.contains("it is incomplete"), "\(info.text)")
  }

  @Test func `takes an export that breaks off from its beginning`() throws {
    let scene = try Self.scene()
    scene.server.play(
      FaultRule(.distorted(.cut(at: 0.7)), on: "exportAccountData", times: 1))
    let result = try scene.command.run(
      scene.line("--login --password-file password --private --attempts 2"))
    #expect(result.status == 0, "\(result.errors)")
    #expect(try extracted(scene) == Self.files())
  }

  @Test func `is for an owner who logs in`() throws {
    let scene = try Self.scene()
    let result = try scene.command.run(scene.line("--private"))
    #expect(result.status == 64)
    #expect(result.errors.contains("--login"), "\(result.errors)")
    #expect(scene.requestCount == 0)
  }

  @Test func `survives compacting and salvaging, and stays the owner's`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    let archive = NetworkScene.archive
    for line in [
      "carpack compact \(archive) -o compacted.car.zst",
      "carpack repair \(archive) -o salvaged.car.zst",
      "carpack merge \(archive) compacted.car.zst -o merged.car.zst",
    ] {
      let result = try scene.command.run(line)
      #expect(result.status == 0, "\(line): \(result.errors)")
      let output = try #require(line.split(separator: " ").last.map(String.init))
      #expect(try extracted(scene, output) == Self.files(), "\(line)")
      #expect(try mode(scene, output) == 0o600, "\(line)")
      #expect(try scene.command.run("carpack verify \(output)").status == 0, "\(line)")
    }
    let pruned = try scene.command.run("carpack prune --keep-last 1 --yes \(archive)")
    #expect([0, 64].contains(pruned.status), "\(pruned.errors)")
    #expect(try extracted(scene) == Self.files())
  }

  @Test func `goes into another account's archive only when it is told to`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    let other = try NetworkScene(
      [StandInAccount("other", posts: 3, blobs: 1, blobSize: 100)])
    #expect(try other.backUp().status == 0)
    try scene.folder.write("other.car.zst", other.folder.read(NetworkScene.archive))
    let merge = "carpack merge \(NetworkScene.archive) other.car.zst"
    let without = try scene.command.run("\(merge) -o without.car.zst")
    #expect(without.status == 0, "\(without.errors)")
    #expect(without.errors.contains("private data of 1 account is left out: --private"))
    let none = try scene.command.run(
      "carpack extract --private --account \(scene.account.did) -d none without.car.zst")
    #expect(none.errors.contains("there is no private data"), "\(none.errors)")
    #expect(!scene.folder.names(under: "none").contains { $0.contains("/private/") })
    let with = try scene.command.run("\(merge) -o with.car.zst --private")
    #expect(with.status == 0, "\(with.errors)")
    let all = try scene.command.run(
      "carpack extract --private --account \(scene.account.did) -d with with.car.zst")
    #expect(all.status == 0, "\(all.errors)")
    #expect(try containsSecret(scene, under: "with"))
  }

  @Test func `says which of it damage has taken`() throws {
    let scene = try Self.scene()
    #expect(try backUp(scene).status == 0)
    let whole = try scene.folder.read(NetworkScene.archive)
    // The conversations are most of the file.
    var bytes = whole
    for index in whole.count / 2..<whole.count / 2 + 2000 { bytes[index] ^= 0xff }
    try scene.folder.write("damaged.car.zst", bytes)
    let verified = try scene.command.run("carpack verify damaged.car.zst")
    #expect(verified.status == 11)
    #expect(verified.errors.contains("private data"), "\(verified.text)\(verified.errors)")
    let damaged = try scene.command.run("carpack extract --private -d given damaged.car.zst")
    #expect(damaged.status == 11, "\(damaged.errors)")
    let salvaged = try scene.command.run("carpack repair damaged.car.zst -o salvaged.car.zst")
    #expect(salvaged.status == 10, "\(salvaged.errors)")
    #expect(try scene.command.run("carpack verify salvaged.car.zst").status == 0)
    let given = try scene.command.run("carpack extract --private -d left salvaged.car.zst")
    #expect(given.status == 10, "\(given.errors)")
    #expect(given.errors.contains(Self.chat), "\(given.errors)")
    #expect(try containsSecret(scene, under: "left"))
  }
}
