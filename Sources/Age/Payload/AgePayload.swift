/// The content of an age file, sealed in chunks each of which can be opened alone (c2sp.org/age,
/// "Payload"): STREAM over ChaCha20-Poly1305.
///
/// ```
/// 16            nonce
/// chunks        65 536 bytes of content and a tag of 16 bytes each; the last has 0 to 65 536 bytes
/// ```
///
/// The key is HKDF of the file key with the nonce as salt and the info `payload`. A chunk is sealed
/// with its number and with whether it is the last, so none can be moved or left out, and the end
/// cannot be cut off. The last chunk is empty only if it is the only one.
///
/// One value serves one thread at a time; others make another from the same file key and nonce.
///
/// - Important: No two contents may be sealed with the same file key and nonce.
package struct AgePayload: ~Copyable, Sendable {
  /// How many bytes of content a chunk has, except the last.
  package static let chunkLength = 1 << 16
  /// How many bytes a chunk is longer than its content.
  package static let tagLength = AuthenticatedCipher.tagLength
  /// How many bytes a sealed chunk has, except the last.
  package static let sealedChunkLength = chunkLength + tagLength
  /// How many bytes lie between the header and the first chunk.
  package static let nonceLength = 16
  private static let info = Array("payload".utf8)

  private var cipher: AuthenticatedCipher

  /// The payload that belongs to a file key and a nonce of ``nonceLength`` bytes.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package init(fileKey: SecretBytes, nonce: [UInt8]) throws(AgeError) {
    precondition(nonce.count == Self.nonceLength)
    cipher = try AuthenticatedCipher(
      key: KeyDerivation.hkdf(fileKey, salt: nonce, info: Self.info))
  }

  /// A nonce for a new payload.
  ///
  /// - Throws: ``AgeError/noCryptoLibrary(_:)``, ``AgeError/cryptoFailed(_:)``.
  package static func makeNonce() throws(AgeError) -> [UInt8] {
    try Libcrypto.open().randomBytes(nonceLength)
  }

  // MARK: - One chunk

  /// Seals a chunk.
  ///
  /// - Parameters:
  ///   - chunk: its content: ``chunkLength`` bytes; in the last, from 1 to as many; none if it is
  ///     the last and the first.
  ///   - index: its number, from 0.
  ///   - target: begins with room for the content and ``tagLength`` bytes more. It may begin where
  ///     the content does, and overlap it in no other way.
  /// - Returns: how many bytes were written.
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  @discardableResult
  package mutating func seal(
    _ chunk: UnsafeRawBufferPointer, index: UInt64, isLast: Bool,
    into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) -> Int {
    precondition(
      isLast
        ? chunk.count <= Self.chunkLength && (chunk.count > 0 || index == 0)
        : chunk.count == Self.chunkLength)
    try unsafe cipher.seal(
      chunk, nonce: AuthenticatedCipher.Nonce(counter: index, isLast: isLast), into: target)
    return chunk.count + Self.tagLength
  }

  /// Opens a chunk.
  ///
  /// - Parameters:
  ///   - chunk: the sealed chunk, whole.
  ///   - index: its number, from 0.
  ///   - isLast: whether the file ends after it.
  ///   - target: begins with room for the content. It may begin where the sealed chunk does, and
  ///     overlap it in no other way. If the chunk is damaged, its content is overwritten.
  /// - Returns: how many bytes were written.
  /// - Throws: ``AgeError/damagedChunk(_:)``, ``AgeError/truncatedPayload`` if it is too short for
  ///   a tag, ``AgeError/emptyLastChunk``, ``AgeError/cryptoFailed(_:)``.
  @discardableResult
  package mutating func open(
    _ chunk: UnsafeRawBufferPointer, index: UInt64, isLast: Bool,
    into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) -> Int {
    let count = chunk.count - Self.tagLength
    guard count >= 0 else { throw .truncatedPayload }
    guard count == Self.chunkLength || (isLast && count < Self.chunkLength) else {
      throw .damagedChunk(index)
    }
    guard count > 0 || index == 0 else { throw .emptyLastChunk }
    let nonce = AuthenticatedCipher.Nonce(counter: index, isLast: isLast)
    guard try unsafe cipher.open(chunk, nonce: nonce, into: target) else {
      throw .damagedChunk(index)
    }
    return count
  }

  /// Decrypts a damaged chunk without checking its tag.
  ///
  /// Each wrong bit of the chunk makes one bit of the content wrong, and anyone who knows the content
  /// can have chosen which.
  ///
  /// - Parameters: as of ``open(_:index:isLast:into:)-(UnsafeRawBufferPointer,_,_,_)``.
  /// - Throws: ``AgeError/truncatedPayload`` if it is too short for a tag,
  ///   ``AgeError/cryptoFailed(_:)``.
  package mutating func openUnverified(
    _ chunk: UnsafeRawBufferPointer, index: UInt64, isLast: Bool,
    into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) {
    guard chunk.count >= Self.tagLength else { throw .truncatedPayload }
    let nonce = AuthenticatedCipher.Nonce(counter: index, isLast: isLast)
    try unsafe cipher.openUnverified(chunk, nonce: nonce, into: target)
  }

  /// Seals a chunk, as ``seal(_:index:isLast:into:)-(UnsafeRawBufferPointer,_,_,_)`` does.
  @discardableResult
  package mutating func seal(
    _ chunk: Span<UInt8>, index: UInt64, isLast: Bool, into target: inout MutableSpan<UInt8>
  ) throws(AgeError) -> Int {
    try unsafe chunk.withUnsafeBytes { (chunk) throws(AgeError) in
      try unsafe target.withUnsafeMutableBytes { (target) throws(AgeError) in
        try unsafe seal(chunk, index: index, isLast: isLast, into: target)
      }
    }
  }

  /// Opens a chunk, as ``open(_:index:isLast:into:)-(UnsafeRawBufferPointer,_,_,_)`` does.
  @discardableResult
  package mutating func open(
    _ chunk: Span<UInt8>, index: UInt64, isLast: Bool, into target: inout MutableSpan<UInt8>
  ) throws(AgeError) -> Int {
    try unsafe chunk.withUnsafeBytes { (chunk) throws(AgeError) in
      try unsafe target.withUnsafeMutableBytes { (target) throws(AgeError) in
        try unsafe open(chunk, index: index, isLast: isLast, into: target)
      }
    }
  }

  // MARK: - All chunks

  /// Seals a whole content.
  ///
  /// - Parameter target: begins with room for ``AgeChunks/sealedLength`` bytes; it may not overlap
  ///   the content.
  /// - Throws: ``AgeError/cryptoFailed(_:)``.
  package mutating func sealAll(
    _ content: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) {
    let chunks = AgeChunks(length: content.count)
    for index in 0..<chunks.count {
      try unsafe seal(
        UnsafeRawBufferPointer(rebasing: content[chunks.range(of: index)]), index: UInt64(index),
        isLast: chunks.isLast(index),
        into: UnsafeMutableRawBufferPointer(rebasing: target[chunks.sealedRange(of: index)]))
    }
  }

  /// Opens a whole payload, without its nonce.
  ///
  /// - Parameter target: begins with room for the content; it may not overlap the payload. If a
  ///   chunk is damaged, it holds the content of those before.
  /// - Throws: ``AgeError/damagedChunk(_:)``, ``AgeError/truncatedPayload``,
  ///   ``AgeError/emptyLastChunk``, ``AgeError/cryptoFailed(_:)``.
  package mutating func openAll(
    _ sealed: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) {
    let chunks = try AgeChunks(sealedLength: sealed.count)
    for index in 0..<chunks.count {
      try unsafe open(
        UnsafeRawBufferPointer(rebasing: sealed[chunks.sealedRange(of: index)]),
        index: UInt64(index), isLast: chunks.isLast(index),
        into: UnsafeMutableRawBufferPointer(rebasing: target[chunks.range(of: index)]))
    }
  }
}
