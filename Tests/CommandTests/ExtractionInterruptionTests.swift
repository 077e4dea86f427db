import Foundation
import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An extraction that is interrupted` {
  private static let account = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"

  private let folder: TemporaryFolder
  private let command: Command

  init() throws {
    folder = try TemporaryFolder()
    command = try Command(in: folder)
    let repository = try TestRepository(posts: 12_000)
    try folder.write("repo.car", try repository.car())
    #expect(try command.run("carpack pack -q repo.car -o a.car.zst").status == 0)
  }

  private var posts: Int { folder.names(under: "out/\(Self.account)/records").count }

  @Test(arguments: [(2, 130), (15, 143), (9, 137)] as [(Int32, Int32)])
  func `says so in one sentence, leaves whole files, and goes on`(signal: Int32, status: Int32)
    throws
  {
    var interruptions = 0
    for threshold in [0, 100, 2000] {
      try? FileManager.default.removeItem(atPath: folder.file("out"))
      let running = try command.start("carpack extract a.car.zst -d out")
      while running.isRunning, posts < threshold || folder.names(under: "out").isEmpty {}
      running.signal(signal)
      let result = try running.wait()
      // On a busy machine it may have been done by then, and about to end.
      if result.status == 0 || result.errors.contains("files written") { continue }
      interruptions += 1
      #expect(result.status == status, "\(result.errors)")
      if signal != 9 {
        #expect(result.errors.split(separator: "\n").count == 1)
        #expect(result.errors.hasPrefix("carpack: interrupted: out has "))
        #expect(folder.names(under: "out").allSatisfy { !$0.contains(".carpack-") })
      }
      let written = posts
      #expect(written <= 12_000)
      let rest = try command.run("carpack extract a.car.zst -d out")
      #expect(rest.status == 0 && !rest.errors.contains("replaced"), "\(rest.errors)")
      #expect(posts == 12_000)
      #expect(folder.names(under: "out").allSatisfy { !$0.contains("partial") })
      let checked = try command.run(
        "cd out/* && sha256sum -c carpack-extracted.sha256 | grep -c OK")
      #expect(checked.text == "12002\n")
    }
    #expect(interruptions > 0)
  }
}
