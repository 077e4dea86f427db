package import ATProtocol
internal import IPLD
package import SystemPackage

/// What a backup of an account would do, as far as that is known without fetching its repository.
package struct BackupPlan: Sendable {
  /// What is known of the repository.
  package enum Repository: Equatable, Sendable {
    /// The archive has no snapshot of the account: the whole repository would be fetched.
    case first
    /// The archive has the newest commit.
    case unchanged
    /// The archive has an older commit: what changed would be fetched.
    case changed
    /// The server does not say which commit is the newest.
    case unknown
    /// It was checked against the server recently, so no request was made.
    case recent
  }

  /// The account.
  package let did: DID
  /// Its handle.
  package let handle: Handle?
  /// The server that would be asked; nil if no request was made.
  package let server: String?
  /// What the archive is called: a file's path, or an address in a bucket.
  package let name: String
  /// The file's path, if it is a file.
  package var path: FilePath { FilePath(name) }
  /// Whether the archive is there.
  package let exists: Bool
  /// What is known of the repository.
  package let repository: Repository
  /// The revision that the archive has.
  package let heldRevision: TID?
  /// The server's newest revision; nil if it was not asked, or does not say.
  package internal(set) var newestRevision: TID?
  /// The blobs that would be asked for.
  package internal(set) var blobs: Blobs = Blobs()
  /// What a person should know.
  package internal(set) var warnings: [String] = []

  /// The blobs to fetch: listed by the server or known to be missing, and not held.
  ///
  /// Records that are not known yet may refer to more.
  package struct Blobs: Equatable, Sendable {
    /// How many blobs the server lists; nil if it was not asked, or does not say.
    package var listed: Int?
    /// How many are to be fetched.
    package var wanted = 0
    /// The declared size of those whose size is known, in bytes.
    package var declaredBytes: UInt64 = 0
    /// How many of them have an unknown size.
    package var unsized = 0

    /// None.
    package init() {}
  }
}
