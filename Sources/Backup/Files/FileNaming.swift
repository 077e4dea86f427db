internal import ATProtocol
internal import IPLD

/// What files are called that come out of an archive.
///
/// Identifiers are used as they are, for their alphabets hold nothing that a file name may not have. A name that would be longer than
/// a file system allows (record keys go up to 512 characters, and names up to 255 bytes) keeps its first 120 characters, followed by `+`
/// and the SHA-256 of the whole in base 32. No identifier holds a `+`, so that no two names meet.
package enum FileNaming {
  /// The longest name that is used as it is, in bytes, with its ending.
  ///
  /// File systems allow 255; some of it is left for others.
  package static let maximumLength = 240
  private static let keptLength = 120

  /// A name with an ending, shortened if it has to be.
  package static func name(_ text: String, ending: String = "") -> String {
    guard text.utf8.count + ending.utf8.count > maximumLength else { return text + ending }
    let digest = SHA256.digest(of: Array(text.utf8).span)
    return "\(text.prefix(keptLength))+\(Base32.encode(digest.bytes.span))\(ending)"
  }

  /// The file of a snapshot's CAR: handle or DID, then the revision; a commit of version 2 has none and gives its CID.
  package static func car(of snapshot: Snapshot) -> String {
    let owner = snapshot.handle?.text ?? snapshot.did.text
    let revision = snapshot.rev?.text ?? "\(snapshot.commit)"
    return name(owner, ending: "-\(revision).car")
  }
}
