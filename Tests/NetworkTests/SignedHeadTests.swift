import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The head of an archive, signed` {
  private static let curves = ["P-256", "secp256k1"]
  private let scene: NetworkScene

  init() throws { scene = try NetworkScene(posts: 3, blobs: 1) }

  private func makeKey(_ curve: String, _ more: String = "") throws {
    let made = try scene.command.run(
      "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:\(curve) \(more) -out key.pem && chmod 600 key.pem"
    )
    #expect(made.status == 0, "\(made.errors)")
  }

  private func verify(_ more: String) throws -> Command.Result {
    try scene.command.run("carpack verify \(NetworkScene.archive) --expect archive.head \(more)")
  }

  @Test(arguments: curves) func `is there still when the archive has grown`(_ curve: String) throws
  {
    try makeKey(curve)
    #expect(try scene.backUp("--sign-head key.pem").status == 0)
    let first = try scene.folder.read("archive.head")
    let text = String(decoding: first, as: UTF8.self)
    #expect(text.hasPrefix("carpack head 1\nhead bafyrei"), "\(text)")
    #expect(try verify("").status == 0)
    // Nothing new: the statement is the older and stronger one.
    #expect(try scene.backUp("--sign-head key.pem").status == 0)
    #expect(try scene.folder.read("archive.head") == first)
    try scene.account.advance()
    #expect(try scene.backUp().status == 0)
    let grown = try verify("")
    #expect(grown.status == 0 && grown.errors.contains("has grown since"), "\(grown.errors)")
    let key = text.split(separator: "\n")[4].dropFirst("key ".count)
    #expect(try verify("--head-key \(key)").status == 0)
    let other = SigningKey(seed: "somebody else").multikey
    #expect(try verify("--head-key did:key:\(other)").status == 12)
  }

  @Test func `is not that of an archive from before, or of another statement`() throws {
    try makeKey("P-256")
    #expect(try scene.backUp().status == 0)
    try scene.folder.write("before.car.zst", scene.folder.read(NetworkScene.archive))
    try scene.account.advance()
    #expect(try scene.backUp("--sign-head key.pem").status == 0)
    let before = try scene.command.run("carpack verify before.car.zst --expect archive.head")
    #expect(before.status == 12, "\(before.errors)")
    let statement = try scene.folder.read("archive.head")
    for (index, byte) in statement.enumerated() where byte != UInt8(ascii: "\n") {
      // A digit for a digit, a letter for a letter: what is read stays readable as far as it can.
      var changed = statement
      changed[index] = byte == UInt8(ascii: "7") ? UInt8(ascii: "6") : UInt8(ascii: "7")
      try scene.folder.write("archive.head", changed)
      let result = try verify("--quick")
      #expect([11, 12].contains(result.status), "byte \(index): \(result.errors)")
    }
    try scene.folder.write("archive.head", Array("hello\n".utf8))
    #expect(try verify("").status == 11)
  }

  @Test func `takes a key that others cannot read, and its passphrase`() throws {
    try makeKey("secp256k1", "-aes-256-cbc -pass pass:tomatoes")
    let without = try scene.backUp("--sign-head key.pem")
    #expect(without.status == 64 && without.errors.contains("no passphrase was given"))
    let wrong = try scene.command.run(
      "CARPACK_KEY_PASSPHRASE=potatoes \(scene.line("--sign-head key.pem"))")
    #expect(wrong.status == 77 && wrong.errors.contains("another passphrase"), "\(wrong.errors)")
    #expect(scene.requestCount == 0)
    let right = try scene.command.run(
      "CARPACK_KEY_PASSPHRASE=tomatoes \(scene.line("--sign-head key.pem"))")
    #expect(right.status == 0, "\(right.errors)")
    #expect(try verify("").status == 0)
    #expect(try scene.command.run("chmod 644 key.pem").status == 0)
    let open = try scene.backUp("--sign-head key.pem")
    #expect(open.status == 13 && open.errors.contains("chmod 600 key.pem"), "\(open.errors)")
    try scene.folder.write("key.pem", Array("no key\n".utf8))
    #expect(try scene.command.run("chmod 600 key.pem").status == 0)
    #expect(try scene.backUp("--sign-head key.pem").status == 64)
    #expect(
      try scene.command.run("openssl genpkey -algorithm ED25519 -out key.pem && chmod 600 key.pem")
        .status == 0)
    let other = try scene.backUp("--sign-head key.pem")
    #expect(other.status == 64 && other.errors.contains("neither a secp256k1 key nor a P-256 key"))
  }
}
