import Foundation
import IPLD

/// A file that sections are appended to.
struct SectionFile: ~Copyable {
  /// How many bytes have been written.
  private(set) var length = 0
  private let handle: FileHandle
  private var pending: [UInt8] = []

  /// Creates the file, or empties it.
  init(_ url: URL) throws {
    try Data().write(to: url)
    handle = try FileHandle(forWritingTo: url)
  }

  /// Appends a section.
  mutating func append(_ block: Block) throws {
    let before = pending.count
    CARWriter.appendSection(block.cid, block.bytes.span, to: &pending)
    length += pending.count - before
    try writeIfFull()
  }

  /// Appends bytes as they are.
  mutating func append(_ bytes: Data) throws {
    pending.append(contentsOf: bytes)
    length += bytes.count
    try writeIfFull()
  }

  /// Writes what is left.
  mutating func flush() throws {
    try handle.write(contentsOf: Data(pending))
    pending.removeAll(keepingCapacity: true)
  }

  /// Writes what is left, and closes the file.
  mutating func close() throws {
    try flush()
    try handle.close()
  }

  private mutating func writeIfFull() throws {
    if pending.count >= 1 << 20 { try flush() }
  }
}
