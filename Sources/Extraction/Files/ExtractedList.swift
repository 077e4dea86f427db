internal import Archive
internal import Files
internal import IPLD
internal import LibC

/// The list of what was extracted into a folder: a line for each file, as `sha256sum` writes and
/// checks them.
///
/// ```
/// # carpack-extracted 1: …
/// 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  records/app.bsky.feed.post/3k2a.json
/// ```
/// Anybody may have written to it, so each line has to be exactly of that form. The lines are not
/// kept in memory, only a hash of each.
struct ExtractedList {
  /// What stands in the first line, before anything that is said to people.
  private static let mark = "# carpack-extracted 1"
  /// The first line.
  static let header =
    "\(mark): what \"carpack extract\" wrote here; \"sha256sum -c\" checks it\n"

  /// The longest list that is read: some seven million files.
  private static let maximumLength = 1 << 30
  /// The longest path.
  private static let maximumPath = 1024
  /// Where the path begins in its line: behind the digits of the digest and two spaces.
  private static let prefix = 2 * SHA256Digest.length + 2

  private let file: MappedFile
  /// Where what counts ends: a list that was interrupted may end in half a line.
  private let end: Int
  /// The hash of each path with its digest.
  private let held: Set<Int>

  /// Reads a list.
  ///
  /// - Parameters:
  ///   - file: its bytes.
  ///   - shown: what a message calls it.
  ///   - isUnfinished: whether it may end in the middle of a line.
  /// - Throws: ``BackupError/malformedDocument(_:)``.
  init(_ file: MappedFile, _ shown: String, isUnfinished: Bool) throws {
    guard file.count <= Self.maximumLength else {
      throw BackupError.malformedDocument("\(shown) is over \(Self.maximumLength) bytes")
    }
    var (number, held): (Int, Set<Int>) = (1, [])
    func malformed() -> BackupError {
      BackupError.malformedDocument(
        "\(shown) is not what carpack writes, in line \(number); without that file, what is there and differs counts as somebody else's"
      )
    }
    end = try file.withBytes { bytes in
      try Self.forEachLine(in: bytes) { line in
        if number > 1 {
          guard let (path, digest) = Self.entry(line) else { throw malformed() }
          held.insert(Self.hash(path, digest))
        } else if !line.array.starts(with: Self.mark.utf8) {
          throw malformed()
        }
        number += 1
      }
    }
    // One that was interrupted may lack even its first line.
    guard isUnfinished || end == file.count && end > 0 else { throw malformed() }
    (self.file, self.held) = (file, held)
  }

  /// Visits the complete lines, without what ends them; answers where they end.
  private static func forEachLine(
    in bytes: Span<UInt8>, _ visit: (Span<UInt8>) throws -> Void
  ) rethrows -> Int {
    var start = 0
    for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") {
      try visit(bytes.extracting(start..<index))
      start = index + 1
    }
    return start
  }

  /// What a line says; nil for one that is not of its form.
  private static func entry(_ line: Span<UInt8>) -> (path: String, digest: SHA256Digest)? {
    guard line.count > prefix, line.count <= prefix + maximumPath,
      line[prefix - 2] == UInt8(ascii: " "), line[prefix - 1] == UInt8(ascii: " ")
    else { return nil }
    var digest: [UInt8] = []
    for place in stride(from: 0, to: prefix - 2, by: 2) {
      guard let high = digit(line[place]), let low = digit(line[place + 1]) else { return nil }
      digest.append(high << 4 | low)
    }
    let path = line.array(prefix..<line.count)
    guard path.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }),
      let text = String(validating: path, as: UTF8.self),
      text.split(separator: "/", omittingEmptySubsequences: false)
        .allSatisfy({ OutputFolder.isName($0) })
    else { return nil }
    return (text, SHA256Digest(digest.span))
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }

  /// A hash of a path, or of a path and what the file holds.
  ///
  /// It is seeded in each process, so nobody can make up two that are the same.
  static func hash(_ path: String, _ digest: SHA256Digest? = nil) -> Int {
    var hasher = Hasher()
    hasher.combine(Array(path.utf8))
    hasher.combine(digest)
    return hasher.finalize()
  }

  /// Whether it says that a file was written with this content.
  func holds(_ path: String, _ digest: SHA256Digest) -> Bool {
    held.contains(Self.hash(path, digest))
  }

  /// The files and what they held, in the order of the list; a file may come several times.
  func forEach(_ body: (_ path: String, _ digest: SHA256Digest) throws -> Void) throws {
    try file.withBytes { bytes in
      _ = try Self.forEachLine(in: bytes.extracting(0..<end)) { line in
        // The first line names no file.
        if let (path, digest) = Self.entry(line) { try body(path, digest) }
      }
    }
  }
}

/// Writes the list of what is extracted, while it is.
///
/// A line is handed to the system before the file that it names takes the place of another; other
/// lines a few at a time. So an interruption, a kill even, costs the memory of a few new files at
/// most, and of no replaced one.
final class ExtractedListWriter {
  /// After how many bytes lines are handed to the system: those of some forty files.
  private static let bufferLength = 1 << 12

  private let descriptor: CInt
  private let shown: String
  private var buffer = Array(ExtractedList.header.utf8)

  /// Writes to a file, which is closed in the end.
  init(_ descriptor: CInt, _ shown: String) { (self.descriptor, self.shown) = (descriptor, shown) }

  deinit { _ = close(descriptor) }

  /// Adds a file.
  func append(_ path: String, _ digest: SHA256Digest) throws {
    buffer += Array("\(digest)  \(path)\n".utf8)
    if buffer.count >= Self.bufferLength { try flush() }
  }

  /// Hands all lines to the system.
  func flush() throws {
    let bytes = buffer
    buffer.removeAll(keepingCapacity: true)
    if !bytes.isEmpty { try OutputFolder.write(bytes.span, to: descriptor, shown) }
  }

  /// Returns when all lines are on the medium.
  func synchronize() throws {
    try flush()
    try BackupError.check(fsync(descriptor), "write \(shown)")
  }
}
