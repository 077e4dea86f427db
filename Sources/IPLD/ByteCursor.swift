/// Reading untrusted bytes: the one place that turns an offset into bytes.
///
/// Every function takes the offset it reads at as `inout`, moves it past what it read, and returns
/// nil, moving nothing, when the bytes end first. Subscripts of `Span` trap out of bounds, so a
/// mistake here stops the program rather than reading other memory.
extension Span<UInt8> {
  /// The next byte.
  @inlinable @inline(__always)
  package func readByte(_ offset: inout Int) -> UInt8? {
    guard offset < count else { return nil }
    defer { offset += 1 }
    return self[offset]
  }

  /// An integer of `Value`'s width, least significant byte first.
  @inlinable @inline(__always)
  package func readLittleEndian<Value: FixedWidthInteger & BitwiseCopyable>(
    _ offset: inout Int, as type: Value.Type
  ) -> Value? {
    guard count - offset >= MemoryLayout<Value>.size else { return nil }
    defer { offset += MemoryLayout<Value>.size }
    return Value(littleEndian: load(at: offset))
  }

  /// An integer of `Value`'s width, most significant byte first.
  @inlinable @inline(__always)
  package func readBigEndian<Value: FixedWidthInteger & BitwiseCopyable>(
    _ offset: inout Int, as type: Value.Type
  ) -> Value? {
    guard count - offset >= MemoryLayout<Value>.size else { return nil }
    defer { offset += MemoryLayout<Value>.size }
    return Value(bigEndian: load(at: offset))
  }

  /// The next `length` bytes as a range of offsets.
  @inlinable @inline(__always)
  package func readRange(_ offset: inout Int, length: Int) -> Range<Int>? {
    guard length >= 0, count - offset >= length else { return nil }
    defer { offset += length }
    return offset..<offset + length
  }

  /// The bytes of `Value`, in the order of this machine, at an offset that need not be aligned.
  ///
  /// - Precondition: all of them lie within the span.
  @inlinable @inline(__always)
  package func load<Value: FixedWidthInteger & BitwiseCopyable>(
    at offset: Int, as type: Value.Type = Value.self
  )
    -> Value
  {
    precondition(offset >= 0 && count - offset >= MemoryLayout<Value>.size)
    return unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self)
  }

  /// Prefetches the memory of these bytes, so that reading them does not wait for it.
  ///
  /// - Returns: something made of them, which has to be kept, or nothing would be read.
  package func fetch(_ range: Range<Int>) -> UInt8 {
    var seen: UInt8 = 0
    for line in stride(from: range.lowerBound, to: range.upperBound, by: 64) { seen |= self[line] }
    return seen
  }

  /// Whether the bytes at `offset` begin with `other`.
  @inlinable
  package func starts(with other: [UInt8], at offset: Int = 0) -> Bool {
    guard offset >= 0, count - offset >= other.count else { return false }
    return extracting(offset..<count).countShared(with: other.span) == other.count
  }

  /// How many bytes are the same at the start of both, looked at eight at a time.
  @inlinable
  package func countShared(with other: Span<UInt8>) -> Int {
    let limit = Swift.min(count, other.count)
    var index = 0
    while limit - index >= 8 {
      let difference = UInt64(littleEndian: load(at: index) ^ other.load(at: index))
      if difference != 0 { return index + difference.trailingZeroBitCount / 8 }
      index += 8
    }
    while index < limit, self[index] == other[index] { index += 1 }
    return index
  }

  /// A copy of some of the bytes.
  @inlinable
  package func array(_ range: Range<Int>) -> [UInt8] {
    let part = extracting(range)
    return unsafe part.withUnsafeBufferPointer { buffer in unsafe [UInt8](buffer) }
  }

  /// A copy of all of the bytes.
  @inlinable
  package var array: [UInt8] { array(0..<count) }
}

extension [UInt8] {
  /// Appends all bytes of a span.
  @inlinable
  package mutating func append(contentsOf bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { buffer in unsafe append(contentsOf: buffer) }
  }
}
