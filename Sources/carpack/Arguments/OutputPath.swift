internal import Files
internal import SystemPackage
internal import Terminal

/// What `-o` means: a folder, if that exists or the path ends in `/`; a file otherwise.
enum OutputPath {
  /// Whether the path names a folder.
  static func isFolder(_ path: String) -> Bool { path.hasSuffix("/") || BlobFolder.isFolder(path) }

  /// Creates the folder that a path which ends in `/` names, if it is missing, but no parent of it.
  static func makeFolder(_ path: String?) throws {
    guard let path, path.hasSuffix("/"), !BlobFolder.isFolder(path) else { return }
    try BlobFolder.makeLast(path)
  }

  /// The archive to write: the path itself, or in the folder that it names a file called after the
  /// input.
  ///
  /// Nil for a folder, where the input has no name.
  static func archive(_ path: String, for input: String) -> String? {
    guard path != "-", isFolder(path) else { return path }
    let ending = ".car.zst"
    guard input != "-", let component = FilePath(input).lastComponent else { return nil }
    let name = component.string
    let stem = [ending, ".car"].first(where: name.hasSuffix).map { name.dropLast($0.count) }
    return FilePath(path).appending("\(stem ?? name[...])\(ending)").string
  }

  /// Refuses to replace a file that is being read.
  static func refuseInput(_ output: String, among files: [String]) throws {
    guard let file = files.first(where: { AtomicFile.areSame(FilePath(output), FilePath($0)) })
    else { return }
    throw Failure(
      "\(output) is the archive \(file) itself", hint: "choose another name for the output",
      status: .usage)
  }
}
