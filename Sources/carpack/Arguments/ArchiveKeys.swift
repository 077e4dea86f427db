internal import Age
internal import Archive
internal import ArgumentParser
internal import Files
internal import LibC
internal import Sealing
internal import Synchronization
internal import Terminal

/// What opens sealed archives in this run, and what seals new ones.
///
/// Keys are read when the first sealed archive is opened.
enum ArchiveKeys {
  /// The variable that names a file with identities.
  static let variable = "CARPACK_AGE_IDENTITY"
  /// The variable that holds the passphrase of such a file, or of an archive.
  static let passphraseVariable = "CARPACK_AGE_PASSPHRASE"

  private struct Given {
    var files: [String] = []
    var recipients: [SealedRecipient] = []
  }

  private static let given = Mutex(Given())

  /// Says which files hold identities.
  static func use(files: [String]) {
    given.withLock { $0.files = files }
    install()
  }

  /// Says to whom new archives are sealed.
  static func use(recipients: [SealedRecipient]) {
    given.withLock { $0.recipients = recipients }
    install()
  }

  private static func install() {
    StorageLayers.install(SealedLayer(ring, recipients: given.withLock { $0.recipients }))
  }

  /// The keys.
  static let ring = KeyRing(
    { try identities() }, ask: { try passphrase("passphrase of the archive: ") })

  private static func identities() throws -> [AgeIdentity] {
    // What is opened from now on is for its owner alone.
    keepOutOfCores()
    let named = given.withLock { $0.files }
    let files = named.isEmpty ? Host.environment(variable).map { [$0.value] } ?? [] : named
    return try files.flatMap(identities)
  }

  /// The identities in a file.
  ///
  /// - Throws: ``Failure`` if it is no such file, or others may read it.
  static func identities(in path: String) throws -> [AgeIdentity] {
    let file = try InputFile(path)
    var status = stat()
    guard
      unsafe stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFREG
        || status.st_mode & 0o077 == 0
    else {
      throw Failure(
        "\(path) may be read by others", hint: "chmod 600 \(path)", status: .refused, at: path)
    }
    return try file.withBytes { bytes in
      do {
        return try AgeIdentityFile(bytes).identities
      } catch AgeError.passphraseNeeded {
        guard let passphrase = try passphrase("passphrase of \(path): ") else {
          throw Failure(
            "\(path) is encrypted with a passphrase, and none was given",
            hint: "set \(passphraseVariable), or answer on a terminal", status: .loginRefused,
            at: path)
        }
        do {
          return try AgeIdentityFile(bytes, passphrase: passphrase).identities
        } catch let error as AgeError {
          throw Failure("\(path): \(error)", status: .loginRefused, at: path)
        }
      } catch let error as AgeError {
        throw Failure(
          "\(path): \(error)", hint: "\"carpack key new\" makes one", status: .usage, at: path)
      }
    }
  }

  /// A passphrase that the environment holds, or that somebody types.
  static func passphrase(_ prompt: String) throws -> AgePassphrase? {
    try typed(prompt).map { try AgePassphrase(SecretBytes(copying: Array($0.utf8).span)) }
  }

  private static func typed(_ prompt: String) -> String? {
    let text = Host.environment(passphraseVariable)?.value ?? Console.askSecret(prompt)
    return text?.isEmpty == false ? text : nil
  }

  /// A new passphrase: typed twice, unless the environment holds it.
  ///
  /// - Throws: ``Failure`` if there is none.
  static func newPassphrase() throws -> AgePassphrase {
    guard let first = typed("passphrase: "), typed("once more: ") == first else {
      throw Failure(
        "there is no passphrase, or not twice the same",
        hint: "set \(passphraseVariable), or answer on a terminal", status: .usage)
    }
    return try AgePassphrase(SecretBytes(copying: Array(first.utf8).span))
  }

  /// Has the system write no core file: the memory of this process holds keys, and what they open.
  ///
  /// With a limit of one byte Linux gives no core to a program that collects them, either.
  private static func keepOutOfCores() {
    var limit = rlimit(rlim_cur: 1, rlim_max: 1)
    #if os(Linux)
      _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    #else
      _ = unsafe setrlimit(RLIMIT_CORE, &limit)
    #endif
  }
}

/// To whom a new archive is sealed.
struct RecipientOptions: ParsableArguments {
  @Option(
    name: .customLong("recipient"),
    help: ArgumentHelp(
      "Seal a new archive, so that only the owner of this age recipient can read it; may be given more than once.",
      valueName: "age1…"))
  var recipients: [String] = []

  func validate() throws {
    guard !recipients.isEmpty else { return }
    ArchiveKeys.use(recipients: try recipients.map(SealedRecipient.init(named:)))
  }
}

extension SealedRecipient {
  /// A recipient by its text.
  ///
  /// - Throws: `ValidationError` for a text that is none.
  init(named text: String) throws {
    do {
      self = .key(try AgeRecipient(parsing: text))
    } catch {
      throw ValidationError("\"\(text)\": \(error)")
    }
  }
}
