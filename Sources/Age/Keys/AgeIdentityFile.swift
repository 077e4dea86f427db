/// A file of identities, as `age-keygen` writes it: one in each line, empty lines, and comments
/// that begin with `#`.
///
/// The whole file may be an age file itself, armored or not, that is sealed with a passphrase
/// (`age-keygen | age -p`).
package struct AgeIdentityFile: Sendable {
  /// The most bytes that an identity file may have, sealed or not: some ten thousand identities.
  package static let maximumLength = 1 << 20

  /// The identities, in the order of the file; at least one.
  package let identities: [AgeIdentity]

  /// Whether a file is sealed, so that ``init(_:passphrase:)`` needs a passphrase.
  package static func isSealed(_ bytes: Span<UInt8>) -> Bool {
    AgeArmor.isArmor(bytes) || AgeHeader.isBeginning(bytes)
  }

  /// Reads an identity file, and opens it first if it is sealed.
  ///
  /// - Parameters:
  ///   - bytes: the file.
  ///   - passphrase: decrypts the file; not used for a file in the clear.
  /// - Throws: ``AgeError/passphraseNeeded(workFactor:)`` if it is sealed and there is none;
  ///   what ``AgeFile/openSecret(_:with:)-(_,AgePassphrase)`` throws of a sealed file;
  ///   ``AgeError/malformedIdentity(_:line:)``, ``AgeError/noIdentity``,
  ///   ``AgeError/identityFileTooLong(limit:)``.
  package init(_ bytes: Span<UInt8>, passphrase: AgePassphrase? = nil) throws(AgeError) {
    guard bytes.count <= Self.maximumLength else {
      throw .identityFileTooLong(limit: Self.maximumLength)
    }
    guard Self.isSealed(bytes) else {
      try self.init(lines: bytes)
      return
    }
    guard let passphrase else {
      // One that is sealed for keys is refused before a passphrase is requested.
      let header = try AgeFile.withoutArmor(bytes) { (bytes) throws(AgeError) in
        try AgeHeader(parsing: bytes)
      }
      guard let workFactor = header.workFactor else { throw .notSealedWithPassphrase }
      throw .passphraseNeeded(workFactor: workFactor)
    }
    let text = try AgeFile.openSecret(bytes, with: passphrase)
    self = try text.withBytes { (text) throws(AgeError) in try AgeIdentityFile(lines: text) }
  }

  /// Reads the lines of a file in the clear.
  ///
  /// A line may end with CR LF.
  private init(lines text: Span<UInt8>) throws(AgeError) {
    var identities: [AgeIdentity] = []
    var (number, start) = (0, 0)
    while start < text.count {
      var end = start
      while end < text.count, text[end] != UInt8(ascii: "\n") { end += 1 }
      let next = end + 1
      if end > start, text[end - 1] == UInt8(ascii: "\r") { end -= 1 }
      number += 1
      if end > start, text[start] != UInt8(ascii: "#") {
        identities.append(try Self.identity(text.extracting(start..<end), line: number))
      }
      start = next
    }
    guard !identities.isEmpty else { throw .noIdentity }
    self.identities = identities
  }

  private static func identity(
    _ text: Span<UInt8>, line: Int
  ) throws(AgeError) -> AgeIdentity {
    do throws(AgeError) {
      return try AgeIdentity(parsing: text)
    } catch .malformedIdentity(let what, nil) {
      throw .malformedIdentity(what, line: line)
    }
  }
}
