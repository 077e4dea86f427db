import Foundation

/// The folder of real repositories and conformance vectors that some tests read.
///
/// It is named by the environment variable `CARPACK_CORPUS` and never copied into the project.
/// Tests discover what is in it (label files, `*.expected.json`, manifests), so they run unchanged
/// on another folder of the same layout.
package enum Corpus {
  /// The corpus folder, or nil when `CARPACK_CORPUS` is not set.
  package static let root: String? = {
    guard let path = ProcessInfo.processInfo.environment["CARPACK_CORPUS"], !path.isEmpty else {
      return nil
    }
    return path.hasSuffix("/") ? String(path.dropLast()) : path
  }()

  /// Whether there is a corpus to read.
  package static var isPresent: Bool { root != nil }

  /// What a skipped test says.
  package static let absence =
    "CARPACK_CORPUS is not set: the vectors and real repositories are not here"

  /// The bytes of one corpus file.
  package static func bytes(_ path: String) throws -> [UInt8] {
    guard let root else { throw CorpusAbsent() }
    return [UInt8](try Data(contentsOf: URL(filePath: "\(root)/\(path)")))
  }

  /// The text of one corpus file.
  package static func text(_ path: String) throws -> String {
    String(decoding: try bytes(path), as: UTF8.self)
  }

  /// A corpus file decoded from JSON.
  package static func json<Value: Decodable>(_ path: String, as type: Value.Type) throws -> Value {
    try JSONDecoder().decode(type, from: Data(try bytes(path)))
  }

  /// The paths, relative to the corpus, of all files under `folder` whose name ends with `suffix`,
  /// sorted.
  ///
  /// Empty when there is no corpus, so that it can feed a parameterised test.
  package static func files(under folder: String, suffix: String) -> [String] {
    guard let root, let walk = FileManager.default.enumerator(atPath: "\(root)/\(folder)") else {
      return []
    }
    var found: [String] = []
    for case let path as String in walk where path.hasSuffix(suffix) {
      found.append("\(folder)/\(path)")
    }
    return found.sorted()
  }

  /// Thrown when a corpus file is requested and there is no corpus.
  package struct CorpusAbsent: Error, CustomStringConvertible {
    /// What a person reads.
    package var description: String { Corpus.absence }
  }
}
