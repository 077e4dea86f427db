/// What is sent along with a request: bytes in memory, or as many as are read while they are sent.
///
/// Its length is known beforehand, for servers that refuse a body without one, or fail.
package struct RequestBody: Sendable {
  /// How many bytes it has.
  package let byteCount: UInt64

  /// Reads some bytes, as many as are requested, from an offset on.
  ///
  /// It is called on the thread that all transfers share, one call after the other, and from the
  /// beginning again if the request has to be sent again.
  package typealias Reading = @Sendable (_ offset: UInt64, _ count: Int) throws -> [UInt8]

  private let reading: Reading

  /// The bytes, if they are in memory.
  package let inMemory: [UInt8]?

  /// Bytes in memory.
  package init(_ bytes: [UInt8]) {
    byteCount = UInt64(bytes.count)
    inMemory = bytes
    reading = { offset, count in Array(bytes[Int(offset)..<Int(offset) + count]) }
  }

  /// Bytes that are read while they are sent.
  package init(byteCount: UInt64, reading: @escaping Reading) {
    (self.byteCount, self.reading) = (byteCount, reading)
    inMemory = nil
  }

  /// The bytes, if they are few, so that a copy of them costs less than being asked for them.
  var toCopy: [UInt8]? { byteCount <= Self.longestCopy ? inMemory : nil }

  private static let longestCopy = 16 << 10

  /// Puts bytes from an offset on into a buffer; returns how many, 0 at the end.
  ///
  /// - Throws: what reading throws; ``Short`` if it gives another number than was requested.
  func copy(from offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = Int(min(UInt64(buffer.count), byteCount - min(offset, byteCount)))
    guard count > 0 else { return 0 }
    let piece = try reading(offset, count)
    guard piece.count == count else { throw Short() }
    unsafe buffer.copyBytes(from: piece)
    return count
  }

  /// What was read is shorter than declared.
  struct Short: Error {}
}
