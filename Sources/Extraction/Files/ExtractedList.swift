internal import Archive
internal import Files
internal import IPLD

/// The list of what was extracted into a folder: a line for each file, as `sha256sum` writes and
/// checks them.
///
/// ```
/// # carpack-extracted 1: …
/// 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  records/app.bsky.feed.post/3k2a.json
/// ```
/// Anybody may have written to it, so each line has to be exactly of that form. It is not kept in
/// memory: for each line, 4 to 16 bytes say where it stands.
///
/// Invariants:
/// 1. `slots.count` is a power of two, and at least half of the slots are 0; the others are where a
///    line begins.
/// 2. `isNoted` has the bit of each slot whose path ``note(_:)`` was given.
final class ExtractedList {
  /// What stands in the first line, before anything that is said to people.
  static let mark = "# carpack-extracted 1"
  /// The first line.
  static let header =
    "\(mark): what \"carpack extract\" wrote here; \"sha256sum -c\" checks it\n"

  /// The longest list that is read: some seven million files.
  private static let maximumLength = 1 << 30
  /// The longest path.
  private static let maximumPath = 1024
  private static let digits = 64
  /// Where the path begins in its line: behind the digest and two spaces.
  private static let prefix = digits + 2

  private let file: MappedFile
  private let shown: String
  /// Where what counts ends: a list that was interrupted may end in half a line.
  private let end: Int
  private var slots: [UInt32] = []
  /// A bit for each slot.
  private var isNoted: [UInt64] = []

  /// Reads a list.
  ///
  /// - Parameters:
  ///   - file: its bytes.
  ///   - shown: what a message calls it.
  ///   - isUnfinished: whether it may end in the middle of a line.
  /// - Throws: ``BackupError/malformedDocument(_:)``.
  init(_ file: MappedFile, _ shown: String, isUnfinished: Bool) throws {
    (self.file, self.shown) = (file, shown)
    guard file.count <= Self.maximumLength else {
      throw BackupError.malformedDocument("\(shown) is over \(Self.maximumLength) bytes")
    }
    let (end, count) = file.withBytes { bytes in
      var (end, count) = (0, 0)
      for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") {
        (end, count) = (index + 1, count + 1)
      }
      return (end, count)
    }
    self.end = end
    guard end == file.count || isUnfinished else { throw Self.malformed(shown, count + 1) }
    if end == 0 {
      // It may have been interrupted before its first line was complete.
      guard isUnfinished else { throw Self.malformed(shown, 1) }
      return
    }
    var size = 16
    while size < count * 2 { size *= 2 }
    slots = [UInt32](repeating: 0, count: size)
    isNoted = [UInt64](repeating: 0, count: size / 64 + 1)
    try file.withBytes { bytes in
      var number = 1
      try forEachLine(in: bytes) { place in
        let line = bytes.extracting(place)
        let isLegal =
          number == 1 ? line.array.starts(with: Self.mark.utf8) : Self.isWellFormed(line)
        guard isLegal else { throw Self.malformed(shown, number) }
        if number > 1 {
          insert(UInt32(place.lowerBound), line.extracting(Self.prefix..<line.count))
        }
        number += 1
      }
    }
  }

  /// Visits the complete lines, without what ends them.
  private func forEachLine(
    in bytes: Span<UInt8>, _ visit: (Range<Int>) throws -> Void
  ) rethrows {
    var start = 0
    for index in 0..<end where bytes[index] == UInt8(ascii: "\n") {
      try visit(start..<index)
      start = index + 1
    }
  }

  private static func malformed(_ shown: String, _ line: Int) -> BackupError {
    BackupError.malformedDocument(
      "\(shown) is not what carpack writes, in line \(line); without that file, what is there and differs counts as somebody else's"
    )
  }

  private static func isWellFormed(_ line: Span<UInt8>) -> Bool {
    guard line.count > prefix, line.count <= prefix + maximumPath else { return false }
    for index in 0..<digits where digit(line[index]) == nil { return false }
    guard line[digits] == UInt8(ascii: " "), line[digits + 1] == UInt8(ascii: " ") else {
      return false
    }
    let path = line.extracting(prefix..<line.count)
    for index in path.indices
    where path[index] < 0x20 || path[index] == 0x7f || path[index] == UInt8(ascii: "\\") {
      return false
    }
    guard let text = String(validating: path.array, as: UTF8.self) else { return false }
    return text.split(separator: "/", omittingEmptySubsequences: false)
      .allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." && $0.utf8.count <= 255 }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }

  // MARK: Looking up

  /// Whether it says that a file was written with this content.
  func holds(_ path: String, _ digest: SHA256Digest) -> Bool {
    file.withBytes { bytes in
      var isHeld = false
      visit(Array(path.utf8), in: bytes) { slot in
        if Self.digest(at: Int(slots[slot]), in: bytes) == digest { isHeld = true }
      }
      return isHeld
    }
  }

  /// Takes note that a file is still one of those that are extracted.
  func note(_ path: String) {
    file.withBytes { bytes in
      visit(Array(path.utf8), in: bytes) { isNoted[$0 / 64] |= 1 << UInt64($0 % 64) }
    }
  }

  /// The files of which ``note(_:)`` was told nothing, and what they held, in the order of the
  /// list.
  func visitOthers(_ body: (_ path: String, _ digest: SHA256Digest) throws -> Void) throws {
    try file.withBytes { bytes in
      try forEachLine(in: bytes) { line in
        guard line.lowerBound > 0 else { return }
        let path = bytes.array((line.lowerBound + Self.prefix)..<line.upperBound)
        var isOther = true
        visit(path, in: bytes) { slot in
          if isNoted[slot / 64] >> UInt64(slot % 64) & 1 == 1 { isOther = false }
        }
        guard isOther else { return }
        try body(
          String(decoding: path, as: UTF8.self), Self.digest(at: line.lowerBound, in: bytes))
      }
    }
  }

  /// Appends all of its lines but the first.
  func append(to writer: ExtractedListWriter) throws {
    try file.withBytes { bytes in
      var start = 0
      while start < end, bytes[start] != UInt8(ascii: "\n") { start += 1 }
      guard start + 1 < end else { return }
      try writer.append(lines: bytes.extracting((start + 1)..<end))
    }
  }

  private static func digest(at start: Int, in bytes: Span<UInt8>) -> SHA256Digest {
    var binary: [UInt8] = []
    for index in 0..<SHA256Digest.length {
      let high = digit(bytes[start + 2 * index]) ?? 0
      binary.append(high << 4 | (digit(bytes[start + 2 * index + 1]) ?? 0))
    }
    return SHA256Digest(binary.span)
  }

  private func insert(_ start: UInt32, _ path: Span<UInt8>) {
    var slot = Self.hash(path.array) & (slots.count - 1)
    while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
    slots[slot] = start
  }

  /// Calls `body` with the slots of a path: there may be several, of which each says what the file
  /// may hold.
  private func visit(_ path: [UInt8], in bytes: Span<UInt8>, _ body: (Int) -> Void) {
    guard !slots.isEmpty else { return }
    var slot = Self.hash(path) & (slots.count - 1)
    while slots[slot] != 0 {
      let start = Int(slots[slot]) + Self.prefix
      if start + path.count < end, bytes[start + path.count] == UInt8(ascii: "\n"),
        path.indices.allSatisfy({ bytes[start + $0] == path[$0] })
      {
        body(slot)
      }
      slot = (slot + 1) & (slots.count - 1)
    }
  }

  /// The hash is seeded in each process, so colliding paths cannot be made up.
  private static func hash(_ path: [UInt8]) -> Int {
    var hasher = Hasher()
    hasher.combine(path)
    return Int(truncatingIfNeeded: UInt(bitPattern: hasher.finalize()))
  }
}
