internal import CGlibc
internal import SystemPackage

#if canImport(Darwin)
  internal import Darwin
#endif

/// An extended attribute of a file: a short text beside its content.
///
/// Where the file system or the file's owner does not allow it there is none.
struct FileAttribute {
  /// Its name, which begins with `user.`.
  let name: String

  private static let maximumLength = 512

  /// What it says; nil if the file has none, or it is longer than any of ours.
  func read(_ path: FilePath) -> String? {
    var bytes = [UInt8](repeating: 0, count: Self.maximumLength)
    #if canImport(Darwin)
      let length = unsafe getxattr(path.string, name, &bytes, bytes.count, 0, 0)
    #else
      let length = Int(unsafe carpack_attribute(path.string, name, &bytes, bytes.count))
    #endif
    guard length > 0 else { return nil }
    return String(decoding: bytes.prefix(length), as: UTF8.self)
  }

  /// Writes it, and answers whether the file system took it.
  func write(_ text: String, to path: FilePath) -> Bool {
    let bytes = Array(text.utf8)
    #if canImport(Darwin)
      return unsafe setxattr(path.string, name, bytes, bytes.count, 0, 0) == 0
    #else
      return unsafe carpack_set_attribute(path.string, name, bytes, bytes.count) == 0
    #endif
  }
}
