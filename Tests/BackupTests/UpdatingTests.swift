import Archive
import Extraction
import Files
import Foundation
import IPLD
import TestSupport
import Testing

@Suite struct `Extracting into a folder that was extracted into before` {
  private static let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
  private static let list = "out/\(did)/carpack-extracted.sha256"
  private static let records = "out/\(did)/records"
  private static let image = SampleFile.png("an image")

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// An account before and after: of three posts, one is changed, one deleted, one new, and the
  /// image goes.
  private func older() throws -> Packed {
    var repository = try TestRepository(posts: 3)
    try repository.add("polka.post/image", blob: .blob(Self.image))
    return try Packed(car: repository.car(), blobs: ["x": Self.image])
  }

  private func newer() throws -> Packed {
    var repository = try TestRepository(posts: 4)
    repository.rev = "3lscuqc52or3x"
    try repository.add("app.bsky.feed.post/3k1000001", ["text": .string("changed")])
    repository.remove("app.bsky.feed.post/3k1000002")
    return try Packed(car: repository.car())
  }

  private func extract(
    _ packed: Packed, _ selection: Selection = .all, deleting: Bool = false,
    overwriting: Bool = false, stopping: @escaping () -> Bool = { false }
  ) throws -> SnapshotExtractor.Report {
    var options = ExtractionOptions()
    options.isDeleting = deleting
    let output = try OutputFolder(
      folder.file("out"), overwriting: overwriting, isStopping: stopping)
    return try SnapshotExtractor.extract(
      selection, of: packed.snapshot, into: output, options: options)
  }

  private func content(_ name: String) throws -> String {
    String(decoding: try folder.read(name), as: UTF8.self)
  }

  /// Holds the list against the files: it names each, with its digest, and nothing else.
  private func expectListIsTrue(sourceLocation: SourceLocation = #_sourceLocation) throws {
    let lines = try content(Self.list).split(separator: "\n")
    #expect(lines.first?.hasPrefix("# carpack-extracted 1: ") == true)
    var listed: [String] = []
    for line in lines.dropFirst() {
      let path = String(line.dropFirst(66))
      let bytes = try folder.read("out/\(Self.did)/\(path)")
      #expect(
        line == "\(SHA256.digest(of: bytes.span))  \(path)", sourceLocation: sourceLocation)
      listed.append(path)
    }
    let files = folder.names(under: "out/\(Self.did)").filter { $0 != "carpack-extracted.sha256" }
    #expect(listed.sorted() == files.sorted(), sourceLocation: sourceLocation)
  }

  @Test func `lists every file with its digest`() throws {
    _ = try extract(older())
    try expectListIsTrue()
  }

  @Test func `replaces what carpack wrote, and leaves the rest of it`() throws {
    _ = try extract(older())
    let report = try extract(newer())
    // The changed post and the metadata; the new post and the CAR are new.
    #expect(report.tally.replaced == 2)
    #expect(report.tally.written == 4)
    #expect(report.tally.alreadyThere == 1)
    #expect(report.inTheWay.isEmpty)
    #expect(try content("\(Self.records)/app.bsky.feed.post/3k1000001.json").contains("changed"))
    #expect(folder.names(under: Self.records).contains("app.bsky.feed.post/3k1000002.json"))
    #expect(folder.names(under: Self.records).contains("polka.post/image.json"))
    try expectListIsTrue()
  }

  @Test func `removes what the snapshot no longer has when that was asked for, and empty folders`()
    throws
  {
    _ = try extract(older())
    let report = try extract(newer(), deleting: true)
    #expect(report.tally.removed == 4)
    let alone = try TemporaryFolder()
    _ = try SnapshotExtractor.extract(
      .all, of: newer().snapshot, into: OutputFolder(alone.file("out")))
    func names(_ folder: TemporaryFolder) -> [String] {
      let all = FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []
      return all.compactMap { $0 as? String }.sorted()
    }
    // Folders included.
    #expect(names(folder) == names(alone))
    try expectListIsTrue()
  }

  @Test func `removes only what was selected`() throws {
    _ = try extract(older())
    var selection = Selection()
    selection.blobs = true
    #expect(try extract(newer(), selection, deleting: true).tally.removed == 1)
    #expect(folder.names(under: "out/\(Self.did)/blobs").isEmpty)
    #expect(folder.names(under: Self.records).count == 4)
    try expectListIsTrue()
  }

  @Test func `does not write again what is the same`() throws {
    let packed = try older()
    _ = try extract(packed)
    func numbers() throws -> [Int?] {
      try folder.names().map { name throws in
        try FileManager.default.attributesOfItem(atPath: folder.file(name))[.systemFileNumber]
          as? Int
      }
    }
    let before = try numbers()
    #expect(try extract(packed).tally.written == 0)
    #expect(try numbers() == before)
  }

  @Test func `keeps what somebody changed, and then writes nothing at all`() throws {
    _ = try extract(older())
    let mine = "\(Self.records)/app.bsky.feed.post/3k1000001.json"
    try folder.write(mine, Array("mine".utf8))
    let before = folder.names()
    let report = try extract(newer(), deleting: true)
    #expect(report.inTheWay == [folder.file(mine)])
    #expect(report.tally.written + report.tally.removed + report.tally.alreadyThere == 0)
    #expect(folder.names() == before)
    #expect(try content(mine) == "mine")
    #expect(try extract(newer(), overwriting: true).inTheWay.isEmpty)
    #expect(try content(mine).contains("changed"))
    try expectListIsTrue()
  }

  @Test func `never removes what somebody changed, or put there`() throws {
    _ = try extract(older())
    let changed = "\(Self.records)/app.bsky.feed.post/3k1000002.json"
    let foreign = "\(Self.records)/polka.post/note.txt"
    try folder.write(changed, Array("mine".utf8))
    try folder.write(foreign, Array("mine too".utf8))
    let report = try extract(newer(), deleting: true)
    #expect(report.changed == [folder.file(changed)])
    #expect(try content(changed) == "mine")
    #expect(try content(foreign) == "mine too")
    #expect(!folder.names(under: Self.records).contains("polka.post/image.json"))
  }

  @Test func `without a list, a file that differs is somebody else's`() throws {
    _ = try extract(older())
    try FileManager.default.removeItem(atPath: folder.file(Self.list))
    #expect(try extract(newer()).inTheWayCount == 2)
    // What is the same is adopted.
    #expect(try extract(older()).tally.written == 0)
    try expectListIsTrue()
    #expect(try extract(newer()).inTheWay.isEmpty)
  }

  @Test func `removes nothing while something is missing or damaged`() throws {
    _ = try extract(older())
    var repository = try TestRepository(posts: 3)
    try repository.add("a.b.c/other", blob: .blob([9]))
    let missing = try extract(Packed(car: repository.car()), deleting: true)
    #expect(missing.missing.count == 1 && missing.keptBecause != nil)
    // All records are there, so that those of the older snapshot may go.
    #expect(folder.names(under: "out/\(Self.did)/blobs").count == 1)
    #expect(!folder.names(under: Self.records).contains("polka.post/image.json"))
    repository.omitted = [try #require(repository.cid(of: "a.b.c/other"))]
    repository.remove("app.bsky.feed.post/3k1000000")
    let partial = try extract(Packed(car: repository.car()), deleting: true)
    #expect(partial.keptBecause != nil)
    #expect(folder.names(under: Self.records).contains("app.bsky.feed.post/3k1000000.json"))
  }

  @Test
  func `stopped after any file, it leaves no half of one, and is gone on with by a newer one`()
    throws
  {
    for count in 0..<40 {
      try? FileManager.default.removeItem(atPath: folder.file("out"))
      if count % 2 == 1 { _ = try extract(older()) }
      var rest = count
      let isStopped: Bool
      do {
        _ = try extract(
          newer(), deleting: true,
          stopping: {
            rest -= 1
            return rest < 0
          })
        isStopped = false
      } catch is CancellationError {
        isStopped = true
      }
      #expect(folder.names().allSatisfy { !$0.contains("/.carpack-") })
      if isStopped, count > 20 { #expect(!folder.names().contains(Self.list + ".partial")) }
      #expect(try extract(older()).inTheWay.isEmpty, "after \(count)")
      #expect(try extract(newer(), deleting: true).inTheWay.isEmpty)
      try expectListIsTrue()
    }
  }

  @Test func `what a killed run has left is taken up, and its halves of files are removed`() throws
  {
    _ = try extract(older())
    let post = "\(Self.records)/app.bsky.feed.post/3k1000000.json"
    // It was about to replace a file, or just had, and was writing the next line and another file.
    try folder.write(post, Array("newest".utf8))
    let digest = SHA256.digest(of: Array("newest".utf8).span)
    let line = "\(digest)  records/app.bsky.feed.post/3k1000000.json\n"
    try folder.write(
      Self.list + ".partial", Array("# carpack-extracted 1: x\n\(line)\(line.prefix(30))".utf8))
    try folder.write("out/\(Self.did)/.carpack-12-3.partial", [1])
    try folder.write("out/\(Self.did)/.carpack-mine.partial", [1])
    let report = try extract(newer())
    #expect(report.inTheWay.isEmpty)
    #expect(try content(post).contains("post number 0"))
    #expect(!folder.names().contains("out/\(Self.did)/.carpack-12-3.partial"))
    #expect(!folder.names().contains(Self.list + ".partial"))
    try FileManager.default.removeItem(
      atPath: folder.file("out/\(Self.did)/.carpack-mine.partial"))
    try expectListIsTrue()
  }

  @Test func `a list that ends before its first line does is no hindrance`() throws {
    _ = try extract(older())
    for text in ["", "# carp"] {
      try folder.write(Self.list + ".partial", Array(text.utf8))
      #expect(try extract(newer(), deleting: true).inTheWay.isEmpty)
      #expect(try extract(older(), deleting: true).inTheWay.isEmpty)
      try expectListIsTrue()
    }
  }

  @Test func `an empty list is none, as a full disk leaves it`() throws {
    for name in [Self.list, Self.list + ".partial"] {
      try folder.write(name, [])
      #expect(try extract(older()).inTheWay.isEmpty)
      try expectListIsTrue()
      try FileManager.default.removeItem(atPath: folder.file("out"))
    }
  }

  private static let line = String(repeating: "0", count: 64) + "  "

  @Test(arguments: [
    "x\n", "# carpack-extracted 2\n", "# carpack-extracted 1", "# carpack-extracted 1\nx\n",
    "# carpack-extracted 1\n\n", "# carpack-extracted 1\n\(line)\n",
    "# carpack-extracted 1\n\(line)/etc/passwd\n", "# carpack-extracted 1\n\(line)../x\n",
    "# carpack-extracted 1\n\(line)a/../../x\n", "# carpack-extracted 1\n\(line)a//b\n",
    "# carpack-extracted 1\n\(line)a/\n", "# carpack-extracted 1\n\(line)./a\n",
    "# carpack-extracted 1\n\(line)a\u{1b}[2J\n", "# carpack-extracted 1\n\(line)a\0b\n",
    "# carpack-extracted 1\n\(line)a\\b\n", "# carpack-extracted 1\n\(line)a",
    "# carpack-extracted 1\n\(line.uppercased().replacing("0", with: "A"))a\n",
    "# carpack-extracted 1\n\(line)\(String(repeating: "a", count: 300))\n",
    "# carpack-extracted 1\n\(line)\(String(repeating: "a/", count: 600))a\n",
  ])
  func `a list that is not exactly of the form is refused, and nothing is touched`(text: String)
    throws
  {
    _ = try extract(older())
    try folder.write(Self.list, Array(text.utf8))
    let before = folder.names()
    #expect(throws: BackupError.self) { try extract(newer(), deleting: true) }
    #expect(folder.names() == before)
    #expect(try content(Self.list) == text)
  }

  @Test func `a list that names other files of the folder has none of them removed or replaced`()
    throws
  {
    _ = try extract(older())
    try folder.write("out/\(Self.did)/mine.txt", [1])
    try folder.write("out/\(Self.did)/private/mine.txt", [1])
    try folder.write("outside/mine.txt", [1])
    try FileManager.default.createSymbolicLink(
      atPath: folder.file("out/\(Self.did)/blobs/link"),
      withDestinationPath: folder.file("outside"))
    let digest = SHA256.digest(of: [UInt8]([1]).span)
    var text = try content(Self.list)
    for path in ["mine.txt", "private/mine.txt", "blobs/link/mine.txt", "blobs/link"] {
      text += "\(digest)  \(path)\n"
    }
    try folder.write(Self.list, Array(text.utf8))
    _ = try extract(newer(), deleting: true)
    #expect(folder.names(under: "outside") == ["mine.txt"])
    #expect(folder.names(under: "out/\(Self.did)").contains("mine.txt"))
    #expect(folder.names(under: "out/\(Self.did)").contains("private/mine.txt"))
    #expect(folder.names(under: "out/\(Self.did)").contains("blobs/link"))
  }

  @Test func `a list that is a link is in the way`() throws {
    _ = try extract(older())
    let list = folder.file(Self.list)
    try FileManager.default.moveItem(atPath: list, toPath: folder.file("elsewhere"))
    try FileManager.default.createSymbolicLink(
      atPath: list, withDestinationPath: folder.file("elsewhere"))
    #expect(throws: BackupError.inTheWay(list)) { try extract(newer()) }
  }

  @Test func `two runs at a time do not write into one folder`() throws {
    let packed = try older()
    _ = try extract(packed)
    var isTried = false
    var count = 0
    _ = try extract(
      packed,
      stopping: {
        count += 1
        // By then it is on its way.
        guard count == 10 else { return false }
        if let output = try? OutputFolder(folder.file("out")) {
          let error = #expect(throws: BackupError.self) {
            try SnapshotExtractor.extract(.all, of: packed.snapshot, into: output)
          }
          isTried = error == .busy(folder.file("out/\(Self.did)"))
        }
        return false
      })
    #expect(isTried)
  }

  @Test func `lines of files that are gone leave the list, however many they are`() throws {
    _ = try extract(older())
    var text = try content(Self.list)
    for number in 0..<20_000 {
      text += "\(Self.line)records/app.bsky.feed.post/\(number).json\n"
    }
    try folder.write(Self.list, Array(text.utf8))
    let report = try extract(newer(), deleting: true)
    #expect(report.inTheWay.isEmpty)
    // What is not there any more leaves the list.
    try expectListIsTrue()
  }
}
