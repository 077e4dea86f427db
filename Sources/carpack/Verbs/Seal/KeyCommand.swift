internal import Age
internal import Archive
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Keys
internal import Reports
internal import Sealing
internal import SystemPackage
internal import Terminal

/// `carpack key`: who can read a sealed archive.
struct KeyCommand: Verb {
  static let page = ManualPage(
    "key", PackageResources.key_txt,
    subcommands: [
      NewIdentityCommand.self, AddRecipientCommand.self, RemoveRecipientCommand.self,
      ListRecipientsCommand.self,
    ])
}

/// `carpack key new`.
struct NewIdentityCommand: ReportingCommand {
  static let page = ManualPage("new", PackageResources.key_new_txt, below: "carpack key")

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The file to write; one that exists is not replaced.", valueName: "file"),
    completion: .file())
  var output: String

  @Flag(help: "Encrypt it with a passphrase, which is asked for.")
  var passphrase = false

  @Flag(help: "Print a page to keep on paper, with the identity on it.")
  var paper = false

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(!json || !paper, "--json and --paper both write to standard output")
  }

  func run() throws {
    guard !AtomicFile.isTaken(FilePath(output)) else {
      throw Failure(
        "\(output) exists already",
        hint: "choose another name; what was sealed for the identity in it needs it",
        status: .cannotCreate)
    }
    let identity = try AgeIdentity.generate()
    let sealing = passphrase ? try ArchiveKeys.newPassphrase() : nil
    let recipient = identity.recipient.text
    try identity.text.withBytes { text in
      try AtomicFile.save(to: FilePath(output), replacing: false, isPrivate: true) { write in
        let lines = try SecretBytes.lines("# recipient: \(recipient)\n", text)
        if let sealing {
          let file = try lines.withBytes { try AgeFile.seal($0, with: sealing) }
          try write(AgeArmor.encode(file.span).span)
        } else {
          try lines.withBytes(write)
        }
      }
      if paper {
        Console.print(text: Self.page(recipient, String(decoding: text.array, as: UTF8.self)))
      }
    }
    if json {
      Self.report.print((recipient, output, passphrase))
    } else {
      if !paper { Console.print(recipient) }
      common.say(
        "\(output) holds the identity. Keep a copy elsewhere: without it nobody can read what is sealed to it"
      )
    }
  }

  private static func page(_ recipient: String, _ identity: String) -> String {
    """
    An identity of age, which opens archives of carpack that are sealed to

      \(recipient)

    Whoever has the next line can read them. Without it, nobody can.

      \(identity)

    To use it, write that line into a file of its own, and name that:

      carpack cat --age-identity FILE ARCHIVE at://…

    Without carpack: how to open the archive with age alone is in the section "Sealed
    archives" of FORMAT.md.

    """
  }

  static let report = Report<(recipient: String, file: String, isEncrypted: Bool)>(
    "key", "`carpack key new`."
  ) {
    Field("recipient", "the recipient: this identity opens archives sealed to it") {
      $0.recipient
    }
    Field("file", "the file with the identity") { $0.file }
    Field("encrypted", "whether it is encrypted with a passphrase") { $0.isEncrypted }
  }
}

extension SecretBytes {
  /// Two texts, one after the other, and the end of a line.
  fileprivate static func lines(_ text: String, _ secret: Span<UInt8>) throws -> SecretBytes {
    let first = Array(text.utf8)
    return unsafe SecretBytes(count: first.count + secret.count + 1) { target in
      for (place, byte) in first.enumerated() { unsafe target[place] = byte }
      for place in secret.indices { unsafe target[first.count + place] = secret[place] }
      unsafe target[first.count + secret.count] = UInt8(ascii: "\n")
    }
  }
}

/// The sealed archive whose keys are listed or changed.
struct SealedArchiveArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp("The sealed archive.", valueName: "archive"), completion: .file())
  var file: String

  /// Who may open it.
  func keys() throws -> SealedKeys {
    try Failure.naming(file) {
      try SealedKeys(FileStorage.open(FilePath(file)), ArchiveKeys.ring)
    }
  }
}

/// `carpack key list`.
struct ListRecipientsCommand: ReportingCommand {
  static let page = ManualPage("list", PackageResources.key_list_txt, below: "carpack key")

  @OptionGroup var archive: SealedArchiveArgument

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let names = try archive.keys().names
    if json { return sealedKeysReport.print((archive.file, names)) }
    for name in names { Console.print(name) }
  }
}

/// `carpack key add`.
struct AddRecipientCommand: ReportingCommand {
  static let page = ManualPage("add", PackageResources.key_add_txt, below: "carpack key")

  @OptionGroup var archive: SealedArchiveArgument

  @Argument(help: ArgumentHelp("The recipients to add.", valueName: "age1…"))
  var recipients: [String] = []

  @Flag(help: "Also let a passphrase open it, which is asked for.")
  var passphrase = false

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      !recipients.isEmpty || passphrase, "nothing to add: name a recipient, or use --passphrase")
    _ = try recipients.map(SealedRecipient.init(named:))
  }

  func run() throws {
    var keys = try archive.keys()
    for recipient in recipients { try keys.add(SealedRecipient(named: recipient)) }
    if passphrase { try keys.add(.passphrase(ArchiveKeys.newPassphrase())) }
    try finish(keys, archive.file)
  }
}

/// `carpack key remove`.
struct RemoveRecipientCommand: ReportingCommand {
  static let page = ManualPage("remove", PackageResources.key_remove_txt, below: "carpack key")

  @OptionGroup var archive: SealedArchiveArgument

  @Argument(
    help: ArgumentHelp("The recipients to remove, or \"passphrase\".", valueName: "age1…"))
  var recipients: [String] = []

  @Flag(help: "Remove the passphrase.")
  var passphrase = false

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      !recipients.isEmpty || passphrase, "nothing to remove: name a recipient, or use --passphrase")
  }

  func run() throws {
    var keys = try archive.keys()
    for recipient in recipients { try keys.remove(recipient) }
    if passphrase { try keys.remove(SealedRecipient.passphraseName) }
    try finish(keys, archive.file)
    if !json { common.say("old copies of the file can still be opened with the removed keys") }
  }
}

extension ReportingCommand {
  /// Prints who may open the archive now.
  fileprivate func finish(_ keys: SealedKeys, _ file: String) throws {
    let names = try keys.names
    if json { return sealedKeysReport.print((file, names)) }
    common.say("\(file): \(Quantity.count(names.count, "key")) can open it")
  }
}

let sealedKeysReport = Report<(file: String, names: [String])>(
  "keys", "`carpack key list`, `carpack key add` and `carpack key remove`."
) {
  ArchiveFields.file { $0.file }
  Field("recipients", "who may open the archive: age recipients, and \"passphrase\"") { $0.names }
}
