internal import ATProtocol
internal import IPLD
internal import SystemPackage

/// When blobs that are lost for good were last asked for again, without any news.
///
/// A snapshot for that alone would be noise, so it is kept beside the content of the file, in an
/// extended attribute for each account: the time, and the manifest whose ledger it is about. Where
/// there are no such attributes, the blobs are asked for in each run.
struct RetryMark {
  /// When, in RFC 3339 and UTC.
  let time: String
  /// The manifest.
  let manifest: CID

  private static func attribute(of did: DID) -> FileAttribute {
    // A DID may be longer than a name of an attribute.
    let digest = SHA256.digest(of: Array(did.text.utf8).span)
    return FileAttribute(name: "user.carpack.tried.\("\(digest)".prefix(16))")
  }

  /// The mark that a file has for an account; nil if there is none about this manifest.
  static func time(of did: DID, _ manifest: CID?, on path: FilePath) -> String? {
    guard let manifest, let text = attribute(of: did).read(path) else { return nil }
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1] == "\(manifest)", Moment(String(parts[0])) != nil else {
      return nil
    }
    return String(parts[0])
  }

  /// Puts the mark on a file, if that has room for it.
  func put(for did: DID, on path: FilePath) {
    // Without it the next run asks again, which is all that it saves.
    _ = Self.attribute(of: did).write("\(time) \(manifest)", to: path)
  }
}
