internal import IPLD
package import SystemPackage

/// How many bytes a file had when something was last committed to it, or cut off on purpose, and how
/// many it has lost at its end before.
///
/// A file whose end was cut off behind a footer is a valid archive, only an older one. So the size
/// is kept beside the content, in the extended attribute `user.carpack.size`: two decimal numbers
/// with a space between. Where a file system has no such attributes, nothing is known. A copy does
/// not have it.
///
/// 1. What was lost stays so, whatever is appended, until ``accept(_:)``.
package enum WrittenSize {
  private static let attribute = FileAttribute(name: "user.carpack.size")

  /// How many bytes a file has lost at its end; 0 if none, or if that is not known.
  package static func lost(of path: FilePath) -> UInt64 {
    // Read first: another process may be committing more.
    let numbers = attribute.read(path)?.split(separator: " ").compactMap { UInt64($0) } ?? []
    guard numbers.count == 2, let size = SystemCalls.size(of: path) else { return 0 }
    return (numbers[0] - min(size, numbers[0])).addingSaturated(numbers[1])
  }

  /// A sentence about what a file has lost; nil if nothing.
  ///
  /// - Parameter name: what to call the file.
  package static func loss(of path: FilePath, named name: String) -> String? {
    let count = lost(of: path)
    guard count > 0 else { return nil }
    return
      "\(name) has lost \(count) bytes at its end that carpack had written: it was cut off, or replaced by an older copy"
  }

  /// Notes that a file is meant to be as long as it is.
  package static func accept(_ path: FilePath) {
    if lost(of: path) > 0, let size = SystemCalls.size(of: path) { put(size, lost: 0, on: path) }
  }

  /// Notes the size of a file, if the file system allows it.
  static func put(_ size: UInt64, lost: UInt64, on path: FilePath) {
    _ = attribute.write("\(size) \(lost)", to: path)
  }
}
