import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An archive that lies elsewhere` {
  static let verbs = [
    "info FILE", "info --json FILE", "ls FILE", "ls --json FILE", "ls --blobs --missing FILE",
    "log FILE", "diff FILE", "stats FILE", "missing FILE", "verify FILE", "verify --quick FILE",
    "cat FILE app.bsky.actor.profile/self", "find post FILE",
  ]

  /// Expects a verb to come to the same as on the file.
  private func compare(_ scene: StoreScene, _ address: String, _ verbs: [String] = verbs) throws {
    for verb in verbs {
      let here = try scene.run("carpack \(verb.replacing("FILE", with: StoreScene.file))")
      let there = try scene.run("carpack \(verb.replacing("FILE", with: address))")
      #expect(there.status == here.status, "\(verb): \(there.errors)")
      #expect(
        there.text.replacing(address, with: "FILE")
          == here.text.replacing(StoreScene.file, with: "FILE"), "\(verb)")
      #expect(
        Self.said(there, address) == Self.said(here, StoreScene.file, isHere: true), "\(verb)")
    }
  }

  /// What a verb says besides, except for what is not examined in a remote archive.
  private static func said(
    _ result: Command.Result, _ name: String, isHere: Bool = false
  ) -> [String] {
    result.errors.replacing(name, with: "FILE")
      .replacing(isHere ? ", and what is stored of the blobs is not damaged" : "", with: "")
      .split(separator: "\n").map(String.init)
      .filter { !$0.contains("the blobs are listed from the archive's index") }
  }

  @Test func `gives every verb what the file gives`() throws {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = scene.newest
    try compare(scene, StoreScene.address)
    let blob = try #require(scene.scene.account.blobs.keys.first)
    for (name, place) in [("here", StoreScene.file), ("there", StoreScene.address)] {
      try scene.expect("carpack extract --all -d \(name) \(place)")
      let result = try scene.run("carpack cat \(place) \(blob)")
      #expect(result.output == scene.scene.account.blobs[blob]?.bytes)
    }
    let files = scene.folder.names(under: "here").sorted()
    #expect(!files.isEmpty)
    #expect(scene.folder.names(under: "there").sorted() == files)
    for file in files {
      let (here, there) = (
        try scene.folder.read("here/\(file)"), try scene.folder.read("there/\(file)")
      )
      #expect(here == there, "\(file)")
    }
  }

  @Test(arguments: [false, true])
  func `does so of a server that knows no parts, or says them wrongly`(_ saysWhole: Bool) throws {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = scene.newest
    scene.store.behaviour.knowsRanges = saysWhole
    scene.store.behaviour.saysWhole = saysWhole
    try compare(scene, StoreScene.address, ["info FILE", "ls FILE", "verify FILE"])
  }

  @Test func `does so when it is damaged, cut short or something else`() throws {
    let scene = try StoreScene()
    var damaged = scene.newest
    damaged[damaged.count / 2] ^= 1
    for bytes in [damaged, [], Array("no archive\n".utf8), [0x28, 0xb5, 0x2f, 0xfd, 0]] {
      try scene.folder.write(StoreScene.file, bytes)
      scene.store[StoreScene.key] = bytes
      try compare(scene, StoreScene.address, ["verify FILE", "info FILE", "ls FILE"])
    }
  }

  @Test func `is damaged at its end in a bucket, where a file may have been cut off by a crash`()
    throws
  {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = Array(scene.newest.dropLast(100))
    let absent = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
    for verb in ["info", "ls", "log", "verify", "cat FILE app.bsky.actor.profile/self"] {
      let line =
        verb.contains("FILE")
        ? verb.replacing("FILE", with: StoreScene.address) : "\(verb) \(StoreScene.address)"
      let result = try scene.expect("carpack \(line)", 11, "the end of the archive is damaged")
      #expect(!result.errors.contains("write that was not finished"), "\(verb): \(result.errors)")
    }
    // What is not found in what is left of it may have been in the rest.
    try scene.expect(
      "carpack cat \(StoreScene.address) \(absent)", 11, "in what can be read of the archive")
    scene.store[StoreScene.key] = scene.newest
    try scene.expect("carpack cat \(StoreScene.address) \(absent)", 66, "not")
  }

  @Test(arguments: ["407", "::::", "ftp://127.0.0.1"])
  func `is not asked for again and again through a proxy that cannot be used`(proxy: String) throws
  {
    let server = try LoopbackServer { _, response in
      response.status = 407
      try response.send()
    }
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    let isLogin = proxy == "407"
    for line in [
      "info https://example.com/a.car.zst", "resolve did:plc:24erpf36pr3v72z6kbpogj23",
      "resolve alice.example.com",
    ] {
      let result = try command.start(
        "carpack \(line)", environment: ["HTTPS_PROXY": isLogin ? server.url : proxy]
      ).wait()
      #expect(result.status == (isLogin ? 77 : 64), "\(line): \(result.errors)")
      #expect(result.errors.contains("HTTPS_PROXY"), "\(result.errors)")
      #expect(!result.errors.contains("attempts"), "\(result.errors)")
    }
    #expect(server.log.count == (isLogin ? 3 : 0))
  }

  @Test func `is read in few requests`() throws {
    // 300 blobs: their frames are no small part of the file.
    let scene = try StoreScene(posts: 3000, blobs: 100, blobSize: 100_000, times: 1)
    scene.store[StoreScene.key] = scene.newest
    let blob = try #require(scene.scene.account.blobs.keys.first)
    try scene.expect("carpack info \(StoreScene.address)")
    #expect(scene.requests().count <= 3)
    try scene.expect("carpack cat \(StoreScene.address) \(blob)")
    #expect(scene.requests().count <= 4)
    try scene.expect("carpack ls \(StoreScene.address)")
    let listing = scene.requests()
    #expect(listing.count <= 6)
    // The blobs themselves are not fetched for it.
    #expect(listing.reduce(0) { $0 + $1.bytesSent } < 2 << 20)
    try scene.expect("carpack verify \(StoreScene.address)")
    let verifying = scene.requests()
    #expect(verifying.count <= 6)
    let fetched = verifying.reduce(0) { $0 + $1.bytesSent }
    #expect(fetched < scene.newest.count + 100_000)
  }

  @Test func `tells which blobs it has without its packs`() throws {
    // Small blobs lie in packs, many of them in one.
    let scene = try StoreScene(posts: 1000, blobs: 600, blobSize: 8000, times: 1)
    scene.store[StoreScene.key] = scene.newest
    for verb in ["ls --blobs", "stats", "missing"] {
      _ = scene.requests()
      try scene.expect("carpack \(verb) \(StoreScene.address)", 0, "the archive's index")
      let requests = scene.requests()
      #expect(requests.count <= 8, "\(verb)")
      #expect(requests.reduce(0) { $0 + $1.bytesSent } < 1 << 20, "\(verb)")
    }
  }

  @Test func `is gone on with from where an answer broke off`() throws {
    let scene = try StoreScene(posts: 100, blobs: 40, blobSize: 200_000, times: 1)
    scene.store[StoreScene.key] = scene.newest
    scene.store.behaviour.bytesBeforeCut = 300_000
    for verb in ["verify \(StoreScene.address)", "pull \(StoreScene.address) pulled.car.zst"] {
      _ = scene.requests()
      try scene.expect("carpack \(verb)")
      let sent = scene.requests().reduce(0) { $0 + $1.bytesSent }
      #expect(sent < scene.newest.count + 400_000, "\(verb)")
    }
    #expect(try scene.folder.read("pulled.car.zst") == scene.newest)
  }

  @Test func `is given up at once by who is told to end, and what was written stays`() throws {
    let scene = try StoreScene(posts: 50, blobs: 40, blobSize: 200_000, times: 1)
    scene.store[StoreScene.key] = scene.newest
    scene.store.behaviour.bytesBeforeStall = 2_000_000
    let running = try scene.start("carpack extract --all -d out \(StoreScene.address)")
    // By then it waits for bytes that do not come.
    pause(2)
    let begin = ContinuousClock.now
    running.signal(SIGTERM)
    #expect(try running.wait().status == 143)
    #expect(begin.duration(to: .now) < .seconds(10))
    scene.store.behaviour.bytesBeforeStall = nil
    try scene.expect("carpack extract --all -d out \(StoreScene.address)")
  }

  @Test func `may be gone on with while it is read`() throws {
    let scene = try StoreScene(times: 2)
    let store = scene.store
    store[StoreScene.key] = scene.generations[0]
    // The first answer brings the end; then the next generation takes its place.
    store.replace(.init(after: 1, StoreScene.key, by: scene.generations[1]))
    let result = try scene.run("carpack ls \(StoreScene.address)")
    #expect(result.status == 0, "\(result.errors)")
    try scene.folder.write("first.car.zst", scene.generations[0])
    let expected = try scene.run("carpack ls first.car.zst")
    #expect(result.text == expected.text)
  }

  @Test func `that is replaced while it is read is never mixed with the other`() throws {
    let scene = try StoreScene(times: 1)
    let other = try StoreScene(posts: 50, times: 1)
    scene.store[StoreScene.key] = scene.newest
    scene.store.replace(.init(after: 1, StoreScene.key, by: other.newest))
    let result = try scene.run("carpack verify \(StoreScene.address)")
    #expect(result.status == 75, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("run the same command again"))
  }

  @Test func `is read over a connection that fails again and again`() throws {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = scene.newest
    scene.store.behaviour.faultRate = 0.3
    try compare(scene, StoreScene.address, ["ls FILE", "verify FILE"])
  }

  @Test(
    arguments: [
      ("s3://archives/none", 66), ("s3://nonesuch/none", 66), ("s3://archives/", 66),
      ("https://user@example.com/x", 13),
    ] as [(String, Int32)])
  func `is not read where there is none`(_ address: String, _ status: Int32) throws {
    let scene = try StoreScene(times: 1)
    try scene.expect("carpack info \(address)", status)
  }

  @Test func `is not read without keys, or with wrong ones`() throws {
    let scene = try StoreScene(times: 1)
    scene.store[StoreScene.key] = scene.newest
    for keys in [
      ["AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": "/nonexistent"],
      ["AWS_SECRET_ACCESS_KEY": "hush-hush"],
    ] {
      let result = try scene.run("carpack info \(StoreScene.address)", environment: keys)
      #expect(result.status == 77, "\(result.errors)")
      #expect(!result.errors.contains("hush"))
    }
  }

  @Test func `says that this machine's time is wrong, and not where keys are`() throws {
    let scene = try StoreScene(times: 1)
    let server = try LoopbackServer { _, response in
      response.status = 403
      try response.send(
        "<Error><Code>RequestTimeTooSkewed</Code></Error>", type: "application/xml")
    }
    let result = try scene.run(
      "carpack info \(StoreScene.address)", environment: ["AWS_ENDPOINT_URL": server.url])
    #expect(result.status == 77)
    #expect(result.errors.contains("set this machine's clock"), "\(result.errors)")
    #expect(!result.errors.contains("looks for keys"), "\(result.errors)")
  }

  @Test func `is read from a web server, and nothing of a secret query is said`() throws {
    let scene = try StoreScene(times: 1)
    let bytes = scene.newest
    let server = try LoopbackServer { request, response in
      guard request.parameter("token") == "hush-hush" else {
        response.status = 403
        return try response.send()
      }
      try StandInStore.give(bytes, to: request, response)
    }
    let verified = try scene.run("carpack verify '\(server.url)/a.car.zst?token=hush-hush'")
    #expect(verified.status == 0, "\(verified.errors)")
    let refused = try scene.run("carpack verify '\(server.url)/a.car.zst?token=hush'")
    #expect(refused.status == 77)
    for result in [verified, refused] {
      #expect(!(result.text + result.errors).contains("hush"), "\(result.text)\(result.errors)")
    }
  }

  @Test(arguments: ["shifted", "longer", "shorter", "other length"])
  func `is refused from a server that sends other parts than it says`(_ lie: String) throws {
    let scene = try StoreScene(times: 1)
    let bytes = scene.newest
    let server = try LoopbackServer { request, response in
      guard let text = request["range"], var part = StandInStore.part(text, of: bytes.count) else {
        return try response.send(bytes)
      }
      let isEnd = part.upperBound == bytes.count
      var total = bytes.count
      var said = part
      if !isEnd {
        switch lie {
        case "shifted": part = part.lowerBound + 1..<part.upperBound + 1
        case "longer": said = said.lowerBound..<said.upperBound + 1
        case "shorter": said = said.lowerBound..<said.upperBound - 1
        default: total += 1
        }
      }
      if lie == "shifted" { said = part }
      response.status = 206
      response.fields.append(
        ("Content-Range", "bytes \(said.lowerBound)-\(said.upperBound - 1)/\(total)"))
      try response.send(Array(bytes[part.clamped(to: 0..<bytes.count)]))
    }
    let result = try scene.run("carpack verify \(server.url)/a.car.zst")
    #expect([13, 75].contains(result.status), "\(result.text)\(result.errors)")
    #expect(result.text.isEmpty)
  }

  @Test func `is not followed into this network`() throws {
    let scene = try StoreScene(times: 1)
    let result = try scene.run("carpack info https://10.255.255.1.nip.example/a.car.zst")
    #expect(result.status == 69 || result.status == 75, "\(result.errors)")
    let refused = try scene.run("carpack info http://example.com/a.car.zst")
    #expect(refused.status == 13 || refused.status == 75, "\(refused.errors)")
  }
}
