package import SystemPackage

/// How many bytes a file had when something was last committed to it, or cut off on purpose.
///
/// A file whose end was cut off behind a footer is a valid archive, only an older one. So the size
/// is kept beside the content, in the extended attribute `user.carpack.size`, in decimal; where a
/// file system has no such attributes, nothing is known. A copy does not have it.
package enum WrittenSize {
  private static let attribute = FileAttribute(name: "user.carpack.size")

  /// How many bytes a file has lost since then; 0 if none, or if that is not known.
  package static func lost(of path: FilePath) -> UInt64 {
    // Read first: another process may be committing more.
    guard let written = attribute.read(path).flatMap({ UInt64($0) }),
      let size = SystemCalls.size(of: path), size < written
    else { return 0 }
    return written - size
  }

  /// A sentence about what a file has lost since then; nil if nothing.
  ///
  /// - Parameter name: what to call the file.
  package static func loss(of path: FilePath, named name: String) -> String? {
    let count = lost(of: path)
    guard count > 0 else { return nil }
    return
      "\(name) is \(count) bytes shorter than carpack left it: its end was cut off, or it is an older copy"
  }

  /// Notes the size of a file, if the file system allows it.
  static func put(_ size: UInt64, on path: FilePath) {
    _ = attribute.write("\(size)", to: path)
  }
}
