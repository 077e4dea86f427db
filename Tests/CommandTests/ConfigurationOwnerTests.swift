import Foundation
import TestSupport
import Testing

/// Only root can give a file to another user.
private let isRoot = geteuid() == 0

@Suite(.enabled(if: Command.path != nil && isRoot, "the command is not built, or this is not root"))
struct `A configuration that another user could have written` {
  private let folder: TemporaryFolder
  private let command: Command
  private let file: String

  init() throws {
    folder = try TemporaryFolder()
    command = try Command(in: folder)
    file = try command.configure("[defaults]\nquiet = true\n")
  }

  /// Any user but root and the one who runs the tests.
  private let other: UInt32 = 65_000

  private func status(_ changing: String) throws -> Int32 {
    let changed = try command.run(changing)
    try #require(changed.status == 0, "\(changed.errors)")
    return try command.run("carpack config").status
  }

  @Test func `is refused, as is their folder, and one on the way`() throws {
    #expect(try status("true") == 0)
    #expect(try status("chown \(other) '\(file)'") == 13)
    #expect(try command.run("carpack config --no-config").status == 0)
    let parent = URL(filePath: file).deletingLastPathComponent().path
    #expect(try status("chown 0 '\(file)'; chown \(other) '\(parent)'") == 13)
    let above = command.configurationFolder
    #expect(try status("chown 0 '\(parent)'; chown \(other) '\(above)'") == 13)
    #expect(try status("chown 0 '\(above)'") == 0)
  }

  @Test func `is refused behind a link of theirs`() throws {
    let line = "mv '\(file)' real.toml; ln -s '\(folder.path)/real.toml' '\(file)'"
    #expect(try status(line) == 0)
    #expect(try status("chown -h \(other) '\(file)'") == 13)
  }

  @Test func `is not read with the rights of another user`() throws {
    let result = try command.run("carpack config")
    #expect(result.text.contains("quiet = true"))
    // Someone else who is root's guest, with root's variables.
    let line =
      "chmod 755 . && cp \"$(readlink -f \"$(command -v carpack)\")\" ./copy && chmod 755 copy && chmod 700 '\(command.configurationFolder)' && setpriv --reuid \(other) --clear-groups ./copy config"
    let guest = try command.run(line)
    // In a folder that they may not read, no file is theirs; a file of root would be trusted.
    #expect(
      guest.status == 0 && guest.text.contains("not there") || guest.errors.contains("setpriv"))
  }
}
