import Archive
import Extraction
import Foundation
import IPLD
import TestSupport
import Testing

@Suite struct `Names and times of extracted files` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static func image(_ number: Int) -> [UInt8] { SampleFile.png("image \(number)") }

  private static func reference(_ number: Int) -> IPLDValue {
    .map([
      "$type": .string("blob"), "ref": .link(.blob(image(number))),
      "mimeType": .string("image/png"), "size": .integer(100),
    ])
  }

  private static func post(
    _ text: String, images: [(number: Int, alt: String)], at time: String = "2025-03-22T10:00:00Z"
  ) -> IPLDMap {
    [
      "text": .string(text), "createdAt": .string(time),
      "embed": .map([
        "images": .array(
          images.map {
            .map(["alt": .string($0.alt), "image": reference($0.number)])
          })
      ]),
    ]
  }

  /// Extracts a repository whose blobs are images; returns the files below the account's folder.
  private func extract(
    _ repository: TestRepository, images: Int, isReadable: Bool = true,
    setsTimes: Bool = true
  ) throws -> [String] {
    var blobs: [String: [UInt8]] = [:]
    for number in 0..<images { blobs["\(number)"] = Self.image(number) }
    let packed = try Packed(car: repository.car(), blobs: blobs, extras: true)
    var options = ExtractionOptions()
    options.isReadable = isReadable
    options.setsTimes = setsTimes
    try? FileManager.default.removeItem(atPath: folder.file("out"))
    for _ in 1...2 {
      // The second finds everything under the same names.
      let report = try SnapshotExtractor.extract(
        .all, of: packed.snapshot, into: OutputFolder(folder.file("out")), options: options)
      #expect(report.inTheWay.isEmpty && report.refused.isEmpty && report.damaged.isEmpty)
    }
    return folder.names(under: "out").map { String($0.drop { $0 != "/" }.dropFirst()) }
      .filter { !$0.hasSuffix(".car") && !$0.hasSuffix(".sha256") }
  }

  private func blobs(_ files: [String]) -> [String] {
    files.filter { $0.hasPrefix("blobs/") }.map { String($0.dropFirst(6)) }
  }

  private func modified(_ name: String) throws -> Date? {
    let account = try #require(folder.names(under: "out").first?.split(separator: "/").first)
    return try FileManager.default.attributesOfItem(atPath: folder.file("out/\(account)/\(name)"))[
      .modificationDate] as? Date
  }

  @Test func `say when, where, which and what`() throws {
    var repository = TestRepository()
    try repository.add(
      "app.bsky.feed.post/3lkxag2qabc2d",
      Self.post("ignored", images: [(0, "Plan of forty beds"), (1, "")]))
    try repository.add(
      "app.bsky.actor.profile/self",
      ["displayName": .string("Alice"), "avatar": Self.reference(2)])
    try repository.add(
      "app.bsky.feed.post/3lkxag2qabc2e",
      [
        "text": .string("a link"), "createdAt": .string("2025-03-23T10:00:00Z"),
        "embed": .map([
          "external": .map(["title": .string("The Page"), "thumb": Self.reference(3)])
        ]),
      ])
    let files = try extract(repository, images: 5)
    #expect(
      blobs(files) == [
        "2025-03-22_3lkxag2q_1_plan-of-forty-beds.png", "2025-03-22_3lkxag2q_2_ignored.png",
        "2025-03-23_3lkxag2q_1_the-page.png",
        // Nothing refers to it.
        "\(CID.blob(Self.image(4))).png",
        // The profile says no time, and that of the commit would be another with each backup.
        "undated_self_1_avatar.png",
      ])
    #expect(
      try extract(repository, images: 5, isReadable: false).contains(
        "records/app.bsky.actor.profile/self.json"))
    #expect(folder.names(under: "out")[0].hasPrefix("did:plc:"))
  }

  @Test(arguments: [
    ("Ein Überblick: Straße & Café, naïve Œuvre", "ein-ueberblick-strasse-cafe-naive-oeuvre"),
    ("  ../../etc/passwd\u{0}\u{1b}[2J<>:\"|?*  ", "etc-passwd-2j"),
    ("Привет, мир!", "привет-мир"), ("日本語のテキスト", "日本語のテキスト"), ("it's Bob\u{2019}s", "its-bobs"),
    ("cafe\u{301}", "cafe"), ("🎉🎉", ""), ("a\u{202e}b\u{200b}c", "abc"), ("x. . .", "x"),
    ("z" + String(repeating: "\u{317}", count: 500), "z"),
    ("и\u{306}\u{306}\u{306}\u{306}и", "и\u{306}\u{306}и"),
    (
      String(repeating: "words and ", count: 50),
      "words-and-words-and-words-and-words-and-words-and-words-and"
    ), (String(repeating: "x", count: 500), String(repeating: "x", count: 60)),
    (String(repeating: "語", count: 500), String(repeating: "語", count: 40)),
  ])
  func `hold what any file system takes of a text`(text: String, slug: String) throws {
    var repository = TestRepository()
    try repository.add("a.b.c/3lkxag2qabc2d", Self.post("", images: [(0, text)]))
    let stem = "2025-03-22_3lkxag2q_1"
    let name = try #require(blobs(extract(repository, images: 1)).first)
    let words = slug.isEmpty ? "" : "_\(slug)"
    // Not as strings, which may be equal without being the same.
    #expect(Array(name.utf8) == Array("\(stem)\(words).png".utf8))
    #expect(name.utf16.count <= 255 && name.utf8.count <= 255)
  }

  @Test func `are never two that differ in case only, or not at all`() throws {
    var repository = TestRepository()
    // The same day, beginning of the key and words.
    for number in 0..<4 {
      try repository.add(
        "a.b.c/3lkxag2qabc2\("defg".map(String.init)[number])",
        Self.post("", images: [(number, number % 2 == 0 ? "Same" : "same")]))
    }
    // The same key too.
    try repository.add("a.b.d/3lkxag2qabc2d", Self.post("", images: [(4, "same")]))
    for key in [
      "a.b.c/Self", "a.b.c/self", "a.b.c/SELF", "a.B.c/x", "a.b.c/x", "a.b.con/nul", "com1.b/a:b",
    ] {
      repository.add(key, bytes: [0xa0])
    }
    let files = try extract(repository, images: 5)
    // They are written in the order of the archive.
    #expect(
      Set(blobs(files).filter { !$0.hasPrefix("bafkrei") }).isSubset(
        of: ["d", "e", "f", "g"].map { "2025-03-22_3lkxag2qabc2\($0)_1_same.png" }
          + ["2025-03-22_3lkxag2q_1_same.png"]))
    #expect(blobs(files).count == 5)
    let paths = folder.names(under: "out")
    #expect(Set(paths.map { $0.lowercased() }).count == paths.count)
    #expect(files.filter { $0.hasPrefix("records/") }.count == 12)
    for component in paths.flatMap({ $0.split(separator: "/") }) {
      #expect(!component.contains { "<>:\"\\|?*".contains($0) || $0.isWhitespace })
      #expect(component.last != ".")
      #expect(!["con", "nul", "com1"].contains(component.lowercased().prefix { $0 != "." }))
    }
  }

  @Test func `times are the record's, or its key's, or the commit's`() throws {
    var repository = TestRepository()
    let day = "2025-03-22T10:00:00.5Z"
    try repository.add("a.b.c/said", Self.post("", images: [(0, "")], at: day))
    // A TID of 2024-01-01 and texts that are not times, or impossible times.
    let early = "3khvmqvozk222"
    try repository.add("a.b.c/\(early)", ["createdAt": .string("yesterday")])
    for (number, text) in ["2061-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "", "0000-00-00"]
      .enumerated()
    {
      try repository.add("a.b.c/odd\(number)", ["createdAt": .string(text)])
    }
    _ = try extract(repository, images: 2, isReadable: false)
    let said = Date(timeIntervalSince1970: 1_742_637_600.5)
    #expect(try modified("records/a.b.c/said.json") == said)
    #expect(try modified("blobs/\(CID.blob(Self.image(0))).png") == said)
    let ofKey = try #require(try modified("records/a.b.c/\(early).json"))
    #expect(abs(ofKey.timeIntervalSince1970 - 1_704_000_000) < 1_000_000)
    let ofCommit = try #require(try modified("records/a.b.c/odd0.json"))
    #expect(abs(ofCommit.timeIntervalSince1970 - 1_750_600_000) < 1_000_000)
    for name in [
      "records/a.b.c/odd1.json", "records/a.b.c/odd2.json", "records/a.b.c/odd3.json",
      "blobs/\(CID.blob(Self.image(1))).png",
    ] {
      #expect(try modified(name) == ofCommit)
    }
    _ = try extract(repository, images: 2, isReadable: false, setsTimes: false)
    for name in ["records/a.b.c/said.json", "blobs/\(CID.blob(Self.image(0))).png"] {
      #expect(try #require(try modified(name)).timeIntervalSinceNow > -3600)
    }
  }
}
