import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The command without /proc` {
  @Test(.enabled(if: Command.canMount, "unshare is not allowed here"))
  func `has its arguments`() throws {
    let command = try Command(in: TemporaryFolder())
    let hidden = "unshare -rm sh -c 'mount -t tmpfs none /proc; exec carpack"
    let result = try command.run("\(hidden) info nowhere.car.zst'")
    #expect(result.status == 66)
    #expect(result.text.isEmpty)
    #expect(result.errors.contains("nowhere.car.zst"))
    let version = try command.run("carpack --version").text
    #expect(try command.run("\(hidden) --version'").text == version)
    #expect(try command.run("\(hidden)'").text.hasPrefix("One verified file"))
  }
}
