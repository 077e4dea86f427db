/// A secret of fixed length, such as a key or a passphrase, in memory that is locked, left out of
/// core dumps and wiped when the last reference to it goes.
///
/// It never changes after it was made, so it may be read by several threads. Printing, dumping and
/// interpolating it give the word "secret". A copy that the closure of ``withBytes(_:)`` makes is
/// not wiped.
@safe
package final class SecretBytes: @unchecked Sendable {
  private let piece: SecretArena.Piece
  /// How many bytes it has.
  package let count: Int

  /// A secret that is written where it is kept.
  ///
  /// - Parameters:
  ///   - count: how many bytes it has.
  ///   - fill: writes it; the memory is zero before.
  /// - Throws: what `fill` throws.
  package init<Failure: Error>(
    count: Int, filling fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    self.count = count
    piece = SecretArena.allocate(count)
    try unsafe fill(UnsafeMutableRawBufferPointer(start: piece.memory, count: count))
  }

  /// A copy of bytes; wiping the original is the caller's.
  package convenience init(copying bytes: Span<UInt8>) {
    unsafe self.init(count: bytes.count) { target in
      unsafe bytes.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
    }
  }

  /// A new secret of random bytes.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package static func random(count: Int) throws(AgeError) -> SecretBytes {
    let library = try Libcrypto.open()
    return try unsafe SecretBytes(count: count) { (target) throws(AgeError) in
      try unsafe library.fillRandomly(target)
    }
  }

  deinit { SecretArena.release(piece) }

  /// Calls a closure with the bytes.
  package func withBytes<Answer: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Answer
  ) throws(Failure) -> Answer {
    let start = unsafe UnsafePointer(piece.memory.assumingMemoryBound(to: UInt8.self))
    let answer = try unsafe body(Span(_unsafeStart: start, count: count))
    extendLifetime(self)
    return answer
  }

  /// Calls a closure with the bytes, for C.
  package func withUnsafeBytes<Answer: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Answer
  ) throws(Failure) -> Answer {
    let answer = try unsafe body(UnsafeRawBufferPointer(start: piece.memory, count: count))
    extendLifetime(self)
    return answer
  }
}

extension SecretBytes: Equatable {
  /// Whether all bytes are equal.
  ///
  /// The time it takes depends on the lengths alone.
  package static func == (left: SecretBytes, right: SecretBytes) -> Bool {
    left.withBytes { left in right.withBytes { right in left.equalsInConstantTime(right) } }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The word "secret".
  package var description: String { "secret" }
  /// The word "secret".
  package var debugDescription: String { description }
  /// Nothing.
  package var customMirror: Mirror { Mirror(self, children: []) }
}
