import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The command without the library for parity` {
  /// Runs a script in which the library cannot be opened.
  private static let hidden = """
    unshare -rm sh -c 'for file in $(ldconfig -p | sed -n "s/.*libisal.so.2 .*=> //p"); do \
      mount --bind /dev/null $file || exit 99; done; exec "$@"' sh
    """

  @Test(.enabled(if: Command.canMount, "unshare is not allowed here"))
  func `begins sealed archives without parity, and says so`() throws {
    let folder = try TemporaryFolder()
    try CommandFixture.write(to: folder)
    let command = try Command(in: folder)
    func run(_ line: String) throws -> Command.Result {
      try command.run("\(Self.hidden) \(line)")
    }
    let recipient = try command.run("carpack key new -o key.age -q").text
    let seal = "carpack pack -q repo.car --blobs blobs --recipient \(recipient.dropLast())"
    let warning = "warning: new sealed archives have no parity to heal themselves with: parity"

    let new = try run("\(seal) -o a.car.zst")
    #expect(new.status == 0)
    #expect(new.errors.contains(warning), "\(new.errors)")
    let info = try command.run("carpack info a.car.zst --age-identity key.age")
    #expect(info.status == 0 && !info.text.contains("parity"))
    // One that is there is nothing new.
    let more = try run(
      "carpack pack -q later.car --blobs blobs -o a.car.zst --age-identity key.age")
    #expect(more.status == 0 && more.errors.isEmpty, "\(more.errors)")

    let without = try run("\(seal) --parity 0 -o b.car.zst")
    #expect(without.status == 0 && without.errors.isEmpty, "\(without.errors)")
    // What is asked for and cannot be made is an error.
    let wanted = try run("\(seal) --parity 5% -o c.car.zst")
    #expect(wanted.status == 1)
    #expect(wanted.errors.contains("hint: install ISA-L"), "\(wanted.errors)")
    #expect(try command.run("ls c.car.zst").status != 0)
  }

  @Test(.enabled(if: Command.canMount, "unshare is not allowed here"))
  func `reads sealed archives with parity, and does not append to them`() throws {
    let folder = try TemporaryFolder()
    try CommandFixture.write(to: folder)
    let command = try Command(in: folder)
    let recipient = try command.run("carpack key new -o key.age -q").text
    let seal = "carpack pack -q repo.car --blobs blobs --recipient \(recipient.dropLast())"
    #expect(try command.run("\(seal) -o a.car.zst").status == 0)
    let before = try folder.read("a.car.zst")
    let key = "--age-identity key.age"
    #expect(try command.run("\(Self.hidden) carpack verify -q a.car.zst \(key)").status == 0)
    let unsealed = "\(Self.hidden) carpack unseal -q a.car.zst -o plain.car.zst \(key)"
    #expect(try command.run(unsealed).status == 0)
    let more = try command.run(
      "\(Self.hidden) carpack pack -q later.car --blobs blobs -o a.car.zst \(key)")
    #expect(more.status == 1)
    #expect(more.errors.contains("hint: install ISA-L"), "\(more.errors)")
    #expect(try folder.read("a.car.zst") == before)
  }
}
