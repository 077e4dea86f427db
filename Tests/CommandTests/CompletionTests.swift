import Foundation
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Completing a command line` {
  /// What is offered at the last of these words: the line that says which files fit, then the
  /// candidates.
  private func offered(_ words: String, in folder: TemporaryFolder) throws -> [String] {
    let count = words.split(separator: " ").count
    let result = try Command(in: folder).run("carpack ---complete zsh \(count) carpack \(words)")
    #expect(result.status == 0)
    #expect(result.errors == "")
    return result.text.split(separator: "\n").map { line in
      String(line.split(separator: "\t", omittingEmptySubsequences: false)[0])
    }
  }

  private func withArchive() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    try CommandFixture.write(to: folder)
    let result = try Command(in: folder).run(
      "carpack pack -q repo.car -o a.car.zst; carpack pack -q later.car -o a.car.zst")
    #expect(result.status == 0 || result.status == 10)
    return folder
  }

  @Test func `offers verbs, and verbs below them`() throws {
    let folder = try TemporaryFolder()
    #expect(try offered("verif", in: folder) == ["none", "verify", "verify-proof"])
    #expect(try offered("help resol", in: folder) == ["none", "resolve"])
    #expect(try offered("help fetch plc", in: folder) == ["none", "plc-log"])
    #expect(try offered("fetch plc", in: folder) == ["none", "plc-log"])
    #expect(try offered("''", in: folder).contains("backup"))
  }

  @Test func `offers options, and files that fit`() throws {
    let folder = try TemporaryFolder()
    #expect(try offered("verify --car", in: folder) == ["none", "--cars"])
    #expect(try offered("verify ''", in: folder) == ["files .zst"])
    #expect(try offered("inspect ''", in: folder) == ["files .car"])
    #expect(try offered("extract a.car.zst -d ''", in: folder) == ["folders"])
  }

  @Test func `offers what the archive on the line holds`() throws {
    let folder = try withArchive()
    #expect(
      try offered("info a.car.zst --at ''", in: folder).prefix(4) == ["none", "2", "1", "latest"])
    let before = try Command(in: folder).run(
      "carpack ---complete zsh 3 carpack info --at la a.car.zst")
    #expect(before.text == "none\nlatest\tthe newest\n", "the archive may follow")
    #expect(try offered("info a.car.zst --at=-", in: folder) == ["none", "--at=-1", "--at=-2"])
    #expect(try offered("ls a.car.zst --account ''", in: folder).count == 2)
    #expect(try offered("cat a.car.zst ''", in: folder) == ["none", "app.bsky.feed.post/"])
    #expect(
      try offered("cat a.car.zst app.bsky.feed.post/l", in: folder)
        == ["none", "app.bsky.feed.post/late"])
    // A post that only the first snapshot has.
    #expect(try offered("cat a.car.zst app.bsky.feed.post/pho", in: folder) == ["none"])
    #expect(
      try offered("cat --at 1 a.car.zst app.bsky.feed.post/pho", in: folder)
        == ["none", "app.bsky.feed.post/photo"])
  }

  @Test func `offers nothing, and says nothing, where there is no archive`() throws {
    let folder = try withArchive()
    for file in ["missing.zst", "repo.car", "text", "empty", "blobs", "/dev/zero"] {
      #expect(try offered("info \(file) --at ''", in: folder) == ["none"], "\(file)")
    }
    let pipe = try Command(in: folder).run(
      "mkfifo pipe && carpack ---complete zsh 3 carpack cat pipe ''")
    #expect(pipe.text == "none\n")
    for call in ["", "bash", "zsh x y", "zsh 9999999999999999999999 carpack", "zsh -1 carpack"] {
      #expect(try Command(in: folder).run("carpack ---complete \(call)").errors == "")
    }
  }

  @Test func `replaces in bash only what readline divides off`() throws {
    let folder = try withArchive()
    let command = try Command(in: folder)
    func bash(_ line: String) throws -> String {
      try command.run("carpack ---complete bash \"\(line)\" '' ' \t\n=:'").text
    }
    #expect(try bash("X=1 carpack info a.car.zst --at=-2") == "none\n-2\n")
    #expect(try bash("true; carpack info 'a.car.zst' --at=-2") == "none\n-2\n")
    #expect(
      try bash("carpack ls a.car.zst --account did:plc:").hasPrefix("none\n")
        && !bash("carpack ls a.car.zst --account did:plc:").contains("did:"))
  }

  @Test func `many paths are offered by what they begin with`() throws {
    let folder = try TemporaryFolder()
    try folder.write("many.car", try TestRepository(posts: 1500).car())
    _ = try Command(in: folder).run("carpack pack -q many.car -o many.car.zst")
    let lines = try offered("cat many.car.zst app.bsky.feed.post/", in: folder).dropFirst()
    #expect(lines.count > 1 && lines.count < 300)
    let first = try #require(lines.first)
    #expect(try offered("cat many.car.zst \(first)", in: folder).count > 1)
  }

  @Test(arguments: ["bash", "zsh", "fish"]) func `has a script that the shell reads`(
    shell: String
  ) throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    let script = try command.run("carpack --generate-completion-script \(shell) >script").status
    #expect(script == 0)
    guard try command.run("command -v \(shell)").status == 0 else { return }
    let result = try command.run("\(shell) -n script")
    #expect(result.status == 0 && result.errors == "")
  }
}
