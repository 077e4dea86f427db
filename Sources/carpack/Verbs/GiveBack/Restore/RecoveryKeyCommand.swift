internal import ATProtocol
internal import ArgumentParser
internal import Failures
internal import Files
internal import HTTP
internal import Reports
internal import Restore
internal import SystemPackage
internal import Terminal
internal import XRPC

/// `carpack recovery-key`: the owner's own rotation key.
struct RecoveryKeyCommand: Verb {
  static let page = ManualPage(
    "recovery-key", PackageResources.recovery_key_txt,
    subcommands: [
      NewKeyCommand.self, AddKeyCommand.self, ListKeysCommand.self, CheckKeyCommand.self,
    ])
}

/// `carpack recovery-key new`.
struct NewKeyCommand: ReportingCommand {
  static let page = ManualPage(
    "new", PackageResources.recovery_key_new_txt, below: "carpack recovery-key")

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The file to write; one that exists is not replaced.", valueName: "file"),
    completion: .file())
  var output: String

  @Option(help: "The curve.")
  var curve = VerificationKey.Curve.k256

  @Flag(
    help:
      "Encrypt it with a passphrase, read from CARPACK_KEY_PASSPHRASE or asked for (PBES2, scrypt, AES-256)."
  )
  var encrypt = false

  @Flag(help: "Write it in the format of goat, which cannot be encrypted.")
  var multikey = false

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if encrypt, multikey { throw ValidationError("--multikey cannot be encrypted") }
  }

  func run() throws {
    guard !AtomicFile.isTaken(FilePath(output)) else {
      throw Failure(
        "\(output) exists already",
        hint: "choose another name; the key in it may be the only one that recovers an account",
        status: .cannotCreate)
    }
    let passphrase = encrypt ? try Self.passphrase() : nil
    let (name, text) = try content(passphrase)
    try AtomicFile.save(to: FilePath(output), replacing: false, isPrivate: true) {
      try $0(text.span)
    }
    if json {
      RecoveryKeyReport(
        key: name, file: output, curve: curve.rawValue, isEncrypted: passphrase != nil
      ).print()
    } else {
      Console.print(name)
      common.say(
        "\(output) holds the private key. Keep a copy elsewhere: without it, you cannot recover the account once your server is gone. \"carpack recovery-key add\" adds it to an account"
      )
    }
  }

  /// A new key: its public half, and the file.
  private func content(_ passphrase: [UInt8]?) throws -> (name: String, text: [UInt8]) {
    do throws(PrivateKey.Fault) {
      let key = try PrivateKey.generate(on: curve)
      let name = key.verificationKey.didKey
      let form =
        multikey ? Array("\(try key.multikey())\n".utf8) : try key.pem(passphrase: passphrase)
      return (name, Array("# private key of \(name)\n".utf8) + form)
    } catch {
      throw Failure("could not make a key: \(error)", status: .failure)
    }
  }

  private static func passphrase() throws -> [UInt8] {
    if let given = Host.environment(KeyFile.variable) { return Array(given.value.utf8) }
    guard let first = Console.askSecret("passphrase: "), !first.isEmpty,
      Console.askSecret("once more: ") == first
    else {
      throw Failure(
        "no passphrase, or the two entries differ",
        hint: "set \(KeyFile.variable), or answer on a terminal", status: .usage)
    }
    return Array(first.utf8)
  }
}

extension VerificationKey.Curve: ExpressibleByArgument {}

/// Which account, and the way to the directory.
struct KeyAccountOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("The account: a handle or a DID.", valueName: "account"))
  var account: String

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  /// Its keys.
  func keys() throws -> PLCUpdate {
    let networkOptions = try network.options()
    let account = try ATIdentifier(account: account)
    return try runBlocking {
      let network = try Network(networkOptions)
      let did = try await IdentityResolver(network: network).resolve(
        account, confirmingHandle: false
      ).did
      return try await PLCUpdate(of: did, network: network, now: { Host.now })
    }
  }
}

/// `carpack recovery-key list`.
struct ListKeysCommand: ReportingCommand {
  static let page = ManualPage(
    "list", PackageResources.recovery_key_list_txt, below: "carpack recovery-key")

  @OptionGroup var options: KeyAccountOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let keys = try options.keys()
    if json {
      RecoveryKeyReport(did: keys.did, rotationKeys: keys.rotationKeys).print()
    } else {
      for (place, key) in keys.rotationKeys.enumerated() { Console.print("\(place + 1)  \(key)") }
    }
  }
}

/// `carpack recovery-key check`.
struct CheckKeyCommand: ReportingCommand {
  static let page = ManualPage(
    "check", PackageResources.recovery_key_check_txt, below: "carpack recovery-key")

  @Argument(help: ArgumentHelp("The file with the key.", valueName: "keyfile"), completion: .file())
  var key: String

  @OptionGroup var options: KeyAccountOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let own = try KeyFile(key).key.verificationKey
    let keys = try options.keys()
    let place = keys.place(of: own)
    if json {
      RecoveryKeyReport(
        did: keys.did, key: own.didKey, place: .some(place.map { $0 + 1 }),
        rotationKeys: keys.rotationKeys
      ).print()
    } else if let place {
      Console.print(
        "\(own) is rotation key \(place + 1) of \(keys.rotationKeys.count) of \(keys.did)")
    } else {
      Console.print("\(own) is not a rotation key of \(keys.did)")
    }
    if place == nil { throw ExitStatus.incomplete }
  }
}

/// `carpack recovery-key add`.
struct AddKeyCommand: ReportingCommand {
  static let page = ManualPage(
    "add", PackageResources.recovery_key_add_txt, below: "carpack recovery-key")

  @Option(
    help: ArgumentHelp("A rotation key that signs, instead of the server.", valueName: "keyfile"),
    completion: .file())
  var with: String?

  @Option(
    help: ArgumentHelp(
      "The code that the server sent by mail, for signing the operation.", valueName: "code"))
  var mailCode: String?

  /// A step that needs confirmation.
  enum Step: String, CaseIterable, ExpressibleByArgument { case identity }

  @Option(help: ArgumentHelp("Send the operation without asking.", valueName: "step"))
  var yes: [Step] = []

  @Argument(help: ArgumentHelp("The file with the key.", valueName: "keyfile"), completion: .file())
  var key: String

  @OptionGroup var options: KeyAccountOptions

  @OptionGroup var login: OwnerLogin

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    guard login.login != (with != nil) else {
      throw ValidationError("one of --login and --with is needed")
    }
  }

  func run() throws {
    let own = try KeyFile(key).key.verificationKey
    let signer = try with.map { file throws in try KeyFile(file).key }
    let ownLogin = try login.asOwner()
    let code = mailCode.map { Secret($0) }
    let keys = try options.keys()
    let kept = FilePath("\(key).\(keys.did.methodSpecificID).operation.json")
    if keys.place(of: own) == 0 {
      // The directory took it, though its answer did not come.
      try AtomicFile.remove(kept)
    } else {
      do {
        try runBlocking { [display = RestoreDisplay(common), yes] in
          try await keys.add(own, keeping: kept) { state in
            if let signer { return try keys.sign(state, with: signer) }
            return try await keys.sign(
              state, as: ownLogin, mailCode: code, asking: OwnerLogin.askForCode)
          } show: {
            display.show($0)
          } agrees: { question in
            yes.contains(.identity) || Console.agrees(question.asked.sentence)
          }
        }
      } catch let error where Failure.isOurs(error) {
        // What was signed is kept, and the code is asked for only if it was not.
        Failure(error).say()
        RestoreDisplay.say(RestoreContinuation.after(error).map(ContinuedCommand.line))
        throw Failure(error).status
      }
    }
    if json {
      RecoveryKeyReport(did: keys.did, key: own.didKey, place: 1).print()
    } else {
      Console.print("\(own) is the first rotation key of \(keys.did)")
    }
  }
}

/// The results of the `recovery-key` subcommands with --json.
struct RecoveryKeyReport {
  var did: DID?
  var key: String?
  var file: String?
  var curve: String?
  var isEncrypted: Bool?
  /// Nil if the subcommand does not report it.
  var place: Int??
  var rotationKeys: [String]?

  func print() { Self.report.print(self) }

  static let report = Report<Self>("recovery-key", "`carpack recovery-key`.") {
    Field(optional: "did", "the account") { $0.did }
    Field(optional: "key", "the public key, as did:key") { $0.key }
    Field(optional: "file", "with `new`: the file") { $0.file }
    Field(optional: "curve", "with `new`: the curve", .one(of: VerificationKey.Curve.self)) {
      $0.curve
    }
    Field(optional: "encrypted", "with `new`: whether there is a passphrase") {
      $0.isEncrypted
    }
    Field(
      optional: "place",
      "with `check` and `add`: the place among the rotation keys, from 1; null if it is none"
    ) { $0.place }
    Field(
      optional: "rotationKeys", "the keys that may change the account, the strongest first"
    ) { $0.rotationKeys }
  }
}
