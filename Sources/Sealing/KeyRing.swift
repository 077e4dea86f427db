package import Age
internal import IPLD
internal import Synchronization

/// The keys that this process has been given, and the identities of the archives that it opened
/// with them.
package final class KeyRing: Sendable {
  private let load: @Sendable () throws -> [AgeIdentity]
  private let ask: @Sendable (_ workFactor: Int) throws -> AgePassphrase?
  private let keep: @Sendable (AgeIdentity) throws -> Void
  private let state = Mutex(State())

  private struct State {
    var identities: [AgeIdentity]?
    /// What a passphrase opened, asked for and computed once, and what was made here, by the lists
    /// of the archives; the oldest first.
    var opened: [(list: [UInt8], identity: AgeIdentity)] = []
  }

  /// Keys that are read when the first sealed archive is opened.
  ///
  /// - Parameters:
  ///   - load: Reads the identities that were given.
  ///   - ask: Asks for a passphrase, where an archive is sealed to one, whose work factor it is
  ///     given; nil if that is not possible.
  ///   - keep: Called with the identity of each archive that is opened with another key, or made.
  package init(
    _ load: @escaping @Sendable () throws -> [AgeIdentity],
    ask: @escaping @Sendable (_ workFactor: Int) throws -> AgePassphrase? = { _ in nil },
    keep: @escaping @Sendable (AgeIdentity) throws -> Void = { _ in }
  ) {
    (self.load, self.ask, self.keep) = (load, ask, keep)
  }

  /// The identity of a sealed archive.
  ///
  /// - Throws: ``SealedError`` if none of the keys opens it; `AgeError` if the system lacks what
  ///   age needs; what reading the keys throws.
  func identity(of slots: KeySlots) throws -> AgeIdentity {
    let list = slots.entries[0]
    let known = try state.withLock { state in
      if let found = state.opened.first(where: { $0.list == list }) { return [found.identity] }
      let identities = try state.identities ?? load()
      state.identities = identities
      return identities
    }
    var passphraseEntry: (file: [UInt8], workFactor: Int)?
    // An entry that is malformed leaves the others as they are.
    var malformed: AgeError?
    for (number, entry) in slots.entries.enumerated() {
      do {
        if number > 0, let workFactor = try AgeHeader(parsing: entry.span).workFactor {
          passphraseEntry = (entry, workFactor)
        } else if let (identity, secret) = try Self.open(entry, with: known) {
          // The first entry, the list, is sealed to the archive's own identity.
          if number == 0 { return identity }
          let found = try Self.identity(in: secret)
          try keep(found)
          return found
        }
      } catch let error as AgeError where error.faultKind == .damage {
        malformed = malformed ?? error
      }
    }
    guard let passphraseEntry, let passphrase = try ask(passphraseEntry.workFactor) else {
      if let malformed { throw SealedError.malformedSlot("\(malformed)") }
      throw known.isEmpty ? SealedError.noKey : SealedError.wrongKey
    }
    do {
      let secret = try AgeFile.openSecret(passphraseEntry.file.span, with: passphrase)
      let identity = try Self.identity(in: secret)
      try remember(identity, of: slots)
      return identity
    } catch AgeError.wrongPassphrase {
      throw SealedError.wrongKey
    } catch let error as AgeError where error.faultKind == .damage {
      throw SealedError.malformedSlot("\(error)")
    }
  }

  /// Remembers the identity of an archive, so that a passphrase is not asked for again.
  ///
  /// - Throws: what keeping its identity throws.
  func remember(_ identity: AgeIdentity, of slots: KeySlots) throws {
    try keep(identity)
    state.withLock { state in
      if state.opened.count >= Self.capacity { state.opened.removeFirst() }
      state.opened.append((slots.entries[0], identity))
    }
  }

  /// How many archives are remembered.
  private static let capacity = 64

  /// The content of an age file, and the identity that opened it; nil if none did.
  private static func open(_ file: [UInt8], with identities: [AgeIdentity]) throws
    -> (identity: AgeIdentity, content: SecretBytes)?
  {
    for identity in identities {
      do {
        return (identity, try AgeFile.openSecret(file.span, with: [identity]))
      } catch AgeError.noIdentityMatches {
        continue
      }
    }
    return nil
  }

  private static func identity(in secret: SecretBytes) throws -> AgeIdentity {
    do {
      return try AgeIdentity(parsing: secret)
    } catch AgeError.malformedIdentity(let what, _) {
      throw SealedError.malformedSlot("it holds no identity: \(what)")
    }
  }
}
