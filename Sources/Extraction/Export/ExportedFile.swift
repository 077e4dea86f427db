internal import Archive
internal import Files
internal import IPLD
internal import SystemPackage

/// A file that an export writes from its beginning to its end; it has its name once all of it is on
/// the disk.
struct ExportedFile {
  /// How many bytes are gathered before they are written.
  private static let piece = 1 << 18

  /// The name of the file.
  let name: String
  private let file: AtomicFile
  private let storage: FileStorage
  private var content: [UInt8] = []
  private var offset: UInt64 = 0

  /// Begins a file.
  ///
  /// - Throws: ``BackupError`` if there is one that is not to be replaced, or it cannot be written.
  init(_ name: String, in folder: FilePath, replacing: Bool) throws {
    self.name = name
    file = try AtomicFile(folder.appending(name), replacing: replacing)
    storage = try file.storage()
    try storage.truncate(to: 0)
  }

  /// Writes a file with all that `body` appends; nothing of it stays if that throws.
  static func write(
    _ name: String, in folder: FilePath, replacing: Bool,
    _ body: (inout ExportedFile) throws -> Void
  ) throws {
    var file = try ExportedFile(name, in: folder, replacing: replacing)
    do {
      try body(&file)
      try file.finish()
    } catch {
      file.discard()
      throw error
    }
  }

  /// Appends bytes.
  mutating func append(_ bytes: [UInt8]) throws { try append(bytes.span) }

  /// Appends bytes.
  mutating func append(_ bytes: Span<UInt8>) throws {
    content.append(contentsOf: bytes)
    if content.count >= Self.piece { try flush() }
  }

  private mutating func flush() throws {
    let pending = content
    try storage.write(pending.span, at: offset)
    offset += UInt64(pending.count)
    content.removeAll(keepingCapacity: true)
  }

  /// Gives the file its name.
  mutating func finish() throws {
    try flush()
    try storage.synchronize()
    try file.publish()
  }

  /// Takes away what was written.
  func discard() { file.discard() }
}
