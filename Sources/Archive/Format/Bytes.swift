internal import LibC

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

// Integers, least significant byte first. Unlike the functions of `IPLD` these are not generic and
// lie in this module, so that the compiler makes one instruction of each where it is called.
extension Span<UInt8> {
  /// The two bytes at `offset`.
  ///
  /// - Precondition: they lie within the span.
  @inline(__always)
  package func u16(_ offset: Int) -> UInt16 { UInt16(littleEndian: word(offset)) }

  /// The four bytes at `offset`.
  ///
  /// - Precondition: they lie within the span.
  @inline(__always)
  package func u32(_ offset: Int) -> UInt32 { UInt32(littleEndian: word(offset)) }

  /// The eight bytes at `offset`.
  ///
  /// - Precondition: they lie within the span.
  @inline(__always)
  package func u64(_ offset: Int) -> UInt64 { UInt64(littleEndian: word(offset)) }

  @inline(__always)
  private func word<Value: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Value {
    precondition(offset >= 0 && offset <= count - MemoryLayout<Value>.size)
    return unsafe withUnsafeBytes {
      unsafe $0.loadUnaligned(fromByteOffset: offset, as: Value.self)
    }
  }

  /// Whether the bytes are the same.
  package func equals(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return unsafe withUnsafeBytes { own in
      unsafe other.withUnsafeBytes { bytes in
        guard let own = own.baseAddress, let bytes = bytes.baseAddress else {
          return true
        }
        return unsafe memcmp(own, bytes, count) == 0
      }
    }
  }
}

extension Span<UInt8> {
  /// The four bytes at `offset` as a little-endian number; nil if there are not this many.
  func firstWord(at offset: Int) -> UInt32? {
    guard offset >= 0, offset <= count - 4 else { return nil }
    return u32(offset)
  }

  /// The first place from `start` on, and before `end`, where these four bytes begin, as a
  /// little-endian number; nil if there is none.
  package func place(of word: UInt32, from start: Int, before end: Int) -> Int? {
    var place = max(0, start)
    let end = min(end, count - 3)
    while place < end {
      let found = unsafe withUnsafeBytes { bytes -> Int? in
        guard let base = bytes.baseAddress else { return nil }
        let hit = unsafe memchr(base + place, Int32(word & 0xff), end - place)
        return unsafe hit.map { unsafe UnsafeRawPointer($0) - base }
      }
      guard let found else { return nil }
      if u32(found) == word { return found }
      place = found + 1
    }
    return nil
  }
}
