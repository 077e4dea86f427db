import Files
import SystemPackage

/// A CAR file that the page reads itself, in its state at each request.
struct OfferedCAR: Sendable {
  /// Where it lies.
  let path: String
  /// The name of its file.
  let name: String
  /// What its address on the page ends with.
  let address: String

  init(_ path: String) {
    self.path = path
    (name, address) = ShelvedArchive.nameAndAddress(path)
  }

  /// How long the file is, and a strong ETag of it (RFC 9110, section 8.8.1); nil if there is none.
  var current: (length: UInt64, tag: String)? {
    FileIdentity(FilePath(path)).map {
      ($0.size, "\"\($0.device)-\($0.inode)-\($0.size)-\($0.modified)\"")
    }
  }
}
