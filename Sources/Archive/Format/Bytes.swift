internal import IPLD

extension [UInt8] {
  /// Appends an integer, least significant byte first.
  @inline(__always)
  package mutating func append(littleEndian value: some FixedWidthInteger & UnsignedInteger) {
    var rest = value
    for _ in 0..<value.bitWidth / 8 {
      append(UInt8(truncatingIfNeeded: rest))
      rest >>= 8
    }
  }

  /// Appends the bytes of a span.
  @inline(__always)
  package mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { buffer in unsafe append(contentsOf: buffer) }
  }
}

extension Span<UInt8> {
  /// Whether the bytes are the same.
  package func equals(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var place = 0
    while place <= count - 8 {
      let left: UInt64 = load(at: place)
      let right: UInt64 = other.load(at: place)
      if left != right { return false }
      place += 8
    }
    while place < count {
      if self[place] != other[place] { return false }
      place += 1
    }
    return true
  }
}
