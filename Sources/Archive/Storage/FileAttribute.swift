internal import CGlibc
internal import LibC
package import SystemPackage

/// A short text that is stored with a file, in an extended attribute.
///
/// It is about this file on this medium, so it is right that most ways to copy a file do not copy
/// it. There is none where the file system or the file's permissions do not allow it.
package struct FileAttribute {
  /// The attribute's name.
  let name: String

  package init(name: String) {
    self.name = name
  }

  /// The longest text that is read, in bytes.
  private static let maximumLength = 256

  /// A file's text; nil if it has none.
  package func read(_ path: FilePath) -> String? {
    var bytes = [UInt8](repeating: 0, count: Self.maximumLength)
    #if canImport(Darwin)
      let length = unsafe getxattr(path.string, name, &bytes, bytes.count, 0, 0)
    #else
      let length = Int(unsafe carpack_attribute(path.string, name, &bytes, bytes.count))
    #endif
    return length > 0 ? String(decoding: bytes.prefix(length), as: UTF8.self) : nil
  }

  /// Sets a file's text, if the file system allows it.
  ///
  /// - Returns: Whether it did.
  package func write(_ text: String, to path: FilePath) -> Bool {
    let bytes = Array(text.utf8)
    #if canImport(Darwin)
      return unsafe setxattr(path.string, name, bytes, bytes.count, 0, 0) == 0
    #else
      return unsafe carpack_set_attribute(path.string, name, bytes, bytes.count) == 0
    #endif
  }
}
