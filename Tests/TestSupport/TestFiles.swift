import Foundation
package import IPLD

extension TemporaryFolder {
  /// Writes a new file, and the folders above it; returns its path.
  ///
  /// As with a copy, nothing that was noted on a file of that name stays.
  @discardableResult
  package func write(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = file(name)
    try FileManager.default.createDirectory(
      at: URL(filePath: path).deletingLastPathComponent(), withIntermediateDirectories: true)
    if FileManager.default.fileExists(atPath: path) {
      try FileManager.default.removeItem(atPath: path)
    }
    try Data(bytes).write(to: URL(filePath: path))
    return path
  }

  /// Reads a file.
  package func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: file(name))))
  }

  /// The paths of all files in it, relative and sorted; a symbolic link counts as a file.
  package func names(under folder: String = "") -> [String] {
    let base = folder.isEmpty ? path : file(folder)
    var names: [String] = []
    guard let walk = FileManager.default.enumerator(atPath: base) else { return [] }
    for case let name as String in walk
    where walk.fileAttributes?[.type] as? FileAttributeType != .typeDirectory {
      names.append(name)
    }
    return names.sorted()
  }
}

extension CID {
  /// The CID of a blob with these bytes.
  package static func blob(_ bytes: [UInt8]) -> CID { CID(codec: .raw, hashing: bytes.span) }
}

/// Bytes that begin as a file of a kind does.
package enum SampleFile {
  /// The beginning of a PNG, and then anything.
  package static func png(_ rest: String) -> [UInt8] {
    [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + Array(rest.utf8)
  }

  /// The beginning of a JPEG, and then anything.
  package static func jpeg(_ rest: String) -> [UInt8] {
    [0xff, 0xd8, 0xff, 0xe0] + Array(rest.utf8)
  }
}
