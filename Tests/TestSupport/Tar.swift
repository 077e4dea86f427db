import Foundation

/// The `tar` program.
package enum Tar {
  /// Unpacks a compressed tar file of the corpus; returns the folder it is in now.
  package static func unpack(_ path: String) throws -> TemporaryFolder {
    guard let root = Corpus.root else { throw Corpus.CorpusAbsent() }
    let folder = try TemporaryFolder()
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["tar", "-xzf", "\(root)/\(path)", "-C", folder.path]
    process.standardInput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw CocoaError(.fileReadCorruptFile) }
    return folder
  }
}
