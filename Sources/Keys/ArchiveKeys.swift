package import Age
internal import Archive
internal import Files
internal import LibC
package import Sealing
internal import Synchronization
internal import Terminal

/// What opens sealed archives in this run, and what seals new ones.
///
/// Keys are read when the first sealed archive is opened.
package enum ArchiveKeys {
  /// The variable that names files with identities, with colons between them.
  package static let variable = "CARPACK_AGE_IDENTITY"
  /// The variable that holds the passphrase of such a file, or of an archive.
  package static let passphraseVariable = "CARPACK_AGE_PASSPHRASE"

  private struct Given {
    var files: [String] = []
    var recipients: [SealedRecipient] = []
    var remembersKeys = false
    /// How much parity new sealed archives have; nil for the usual.
    var parity: Int?
    /// Says something about new archives; whether it is a problem.
    var say: @Sendable (_ text: String, _ isProblem: Bool) -> Void = { _, _ in }
    /// Whether it was said how much parity new sealed archives have.
    var hasSaidParity = false
  }

  /// How much parity new sealed archives have where the user does not say it, in percent: no other
  /// program finds what is left in a damaged one.
  private static let usualParity = 5

  private static let given = Mutex(Given())

  /// Sets the files that hold identities.
  ///
  /// - Parameter say: Says something about new archives; whether it is a problem.
  package static func use(
    files: [String], say: @escaping @Sendable (_ text: String, _ isProblem: Bool) -> Void
  ) {
    given.withLock { given in (given.files, given.say) = (files, say) }
    install()
  }

  /// Sets how much parity new sealed archives have, in percent; 0 for none.
  package static func use(parity: Int) { given.withLock { $0.parity = parity } }

  /// Sets the recipients to whom new archives are sealed.
  package static func use(recipients: [SealedRecipient]) {
    keepSecret()
    given.withLock { $0.recipients = recipients }
    install()
  }

  /// Keeps the identities of archives that are opened or made on this machine.
  package static func rememberKeys() { given.withLock { $0.remembersKeys = true } }

  /// Makes every opening of a sealed archive use the keys that were given.
  package static func install() {
    StorageLayers.install(layer(recipients: given.withLock { $0.recipients }))
  }

  /// What opens sealed archives, and begins new ones for these recipients.
  package static func layer(recipients: [SealedRecipient] = []) -> SealedLayer {
    SealedLayer(ring, recipients: recipients, parity: { try parityOfNew() })
  }

  /// How much parity a new sealed archive has; nil for none.
  ///
  /// Where the user did not say it, it is said, once.
  ///
  /// - Throws: `ArchiveError` if the user wants parity, and the library for it is not installed.
  private static func parityOfNew() throws(ArchiveError) -> Int? {
    let (told, say) = given.withLock { given in
      let say = given.hasSaidParity ? { _, _ in } : given.say
      if given.parity == nil { given.hasSaidParity = true }
      return (given.parity, say)
    }
    if told == 0 { return nil }
    do {
      try ArchiveWriter.requireParityLibrary()
    } catch {
      guard told == nil else { throw error }
      say("new sealed archives have no parity to heal themselves with: \(error)", true)
      return nil
    }
    if told == nil {
      say(
        "new sealed archives have \(usualParity) % parity to heal themselves with; --parity 0 leaves it out",
        false)
    }
    return told ?? usualParity
  }

  /// The keys.
  package static let ring = KeyRing(
    { try identities() },
    ask: { workFactor in
      guard let passphrase = try passphrase("passphrase of the archive: ") else { return nil }
      guard agrees(to: workFactor) else {
        throw SealedError.costlyPassphrase(workFactor: workFactor)
      }
      return passphrase
    },
    keep: { identity in
      if given.withLock({ $0.remembersKeys }) { try RememberedKeys.keep(identity) }
    })

  private static func identities() throws -> [AgeIdentity] {
    keepSecret()
    return try (files + RememberedKeys.files()).flatMap(identities)
  }

  /// The files that hold identities: those that were named, or else those of the environment.
  private static var files: [String] {
    let named = given.withLock { $0.files }
    guard named.isEmpty else { return named }
    return Host.environment(variable)?.value.split(separator: ":").map(String.init) ?? []
  }

  /// Passes the files on to a program that replaces this one.
  package static func handOn() {
    if !files.isEmpty { _ = unsafe setenv(variable, files.joined(separator: ":"), 1) }
  }

  /// The identities in a file.
  ///
  /// - Throws: ``Failure`` if it is not a file with identities, or others may read it.
  private static func identities(in path: String) throws -> [AgeIdentity] {
    try SecretFile.read(path, limit: AgeIdentityFile.maximumLength) {
      try identities($0, of: path)
    }
  }

  private static func identities(_ bytes: Span<UInt8>, of path: String) throws -> [AgeIdentity] {
    var status = stat()
    guard
      unsafe stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFREG
        || status.st_mode & 0o077 == 0
    else {
      throw Failure(
        "\(path) may be read by others", hint: "chmod 600 \(path.shellWord)", status: .refused,
        at: path)
    }
    do {
      return try AgeIdentityFile(bytes).identities
    } catch AgeError.passphraseNeeded(let workFactor) {
      guard let passphrase = try passphrase("passphrase of \(path): ") else {
        throw Failure(
          "\(path) is encrypted with a passphrase, but none was given",
          hint: "set \(passphraseVariable), or answer on a terminal", status: .loginRefused,
          at: path)
      }
      guard agrees(to: workFactor) else {
        throw Failure(
          "\(path): to try its passphrase takes \(AgePassphrase.cost(ofWorkFactor: workFactor))",
          hint: "run it on a terminal, which asks first, or encrypt it again with \"age -p\"",
          status: .loginRefused, at: path)
      }
      do {
        return try AgeIdentityFile(bytes, passphrase: passphrase).identities
      } catch {
        throw Failure("\(path): \(error)", status: .loginRefused, at: path)
      }
    } catch {
      throw Failure(
        "\(path): \(error)", hint: "\"carpack key new\" makes one", status: .usage, at: path)
    }
  }

  /// Whether a passphrase may be tried: where that takes much memory, the user is asked first.
  ///
  /// A work factor above age's own limit is refused when it is tried, whatever the answer.
  private static func agrees(to workFactor: Int) -> Bool {
    guard (AgePassphrase.cheapLimit + 1...AgePassphrase.defaultLimit).contains(workFactor) else {
      return true
    }
    return Console.agrees(
      "to try this passphrase takes \(AgePassphrase.cost(ofWorkFactor: workFactor)); try it?"
    )
  }

  /// A passphrase that the environment holds, or that is typed.
  private static func passphrase(_ prompt: String) throws -> AgePassphrase? {
    try typed(prompt).map { try AgePassphrase(SecretBytes(copying: Array($0.utf8).span)) }
  }

  private static func typed(_ prompt: String) -> String? {
    let text = Host.environment(passphraseVariable)?.value ?? Console.askSecret(prompt)
    return text?.isEmpty == false ? text : nil
  }

  /// A new passphrase: typed twice, unless the environment holds it.
  ///
  /// - Throws: ``Failure`` if there is none.
  package static func newPassphrase() throws -> AgePassphrase {
    guard let first = typed("passphrase: "), typed("once more: ") == first else {
      throw Failure(
        "no passphrase, or the two entries differ",
        hint: "set \(passphraseVariable), or answer on a terminal", status: .usage)
    }
    return try AgePassphrase(SecretBytes(copying: Array(first.utf8).span))
  }

  /// Keeps what is in sealed archives off the disk: from now on temporary files lie in memory, and
  /// the system writes no core file of this process, whose memory holds keys and what they open.
  ///
  /// With a limit of one byte Linux gives no core to a program that collects them, either.
  private static func keepSecret() {
    TemporaryFile.stayInMemory()
    var limit = rlimit(rlim_cur: 1, rlim_max: 1)
    #if os(Linux)
      _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    #else
      _ = unsafe setrlimit(RLIMIT_CORE, &limit)
    #endif
  }
}
