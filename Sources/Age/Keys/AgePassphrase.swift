/// A passphrase that seals and opens files, and how much work it is to try one
/// (c2sp.org/age, "The scrypt recipient type").
///
/// age forbids other recipients beside a passphrase: a file that it opens was then sealed by one
/// who knew it.
package struct AgePassphrase: Sendable {
  /// The work factor for encrypting: 256 MiB of memory and about a second, as with `age -p`.
  package static let defaultWorkFactor = 18
  /// The limit for decrypting: 4 GiB of memory and about 20 seconds, as with `age -d`.
  package static let defaultLimit = 22
  /// The highest work factor with which a passphrase is tried without asking: a try takes 1 GiB of
  /// memory and about 5 seconds.
  package static let cheapLimit = 20

  /// What it takes to try a passphrase with a work factor above ``cheapLimit``, in words.
  package static func cost(ofWorkFactor workFactor: Int) -> String {
    let times = 1 << (workFactor - cheapLimit)
    return
      "\(times) GiB of memory and \(5 * times) s or more (scrypt work factor \(workFactor))"
  }
  /// The most that libcrypto can allocate: 2^30 blocks of 1 KiB.
  private static let possible = 1...30

  /// The passphrase, in UTF-8.
  let secret: SecretBytes
  /// The work factor for encrypting: log₂ N of scrypt.
  package let workFactor: Int
  /// The highest work factor for decrypting: log₂ N of scrypt.
  package let limit: Int

  /// A passphrase.
  ///
  /// - Parameters:
  ///   - secret: its bytes, in UTF-8, without the end of the line that it was read from.
  ///   - workFactor: log₂ N for sealing; each more doubles time and memory.
  ///   - limit: the highest log₂ N for opening.
  /// - Precondition: both are from 1 to 30.
  /// - Throws: ``AgeError/emptyPassphrase``.
  package init(
    _ secret: SecretBytes, workFactor: Int = defaultWorkFactor, limit: Int = defaultLimit
  ) throws(AgeError) {
    precondition(Self.possible.contains(workFactor) && Self.possible.contains(limit))
    guard secret.count > 0 else { throw .emptyPassphrase }
    self.secret = secret
    self.workFactor = workFactor
    self.limit = limit
  }
}
