/// Whole age files in memory, sealed and opened by one call: for keys, settings and other small
/// things.
///
/// ```
/// header     AgeHeader
/// 16         nonce
/// chunks     AgePayload
/// ```
package enum AgeFile {
  /// The length of a file that holds `length` bytes for this many recipients, without armor.
  package static func length(of length: Int, recipients count: Int = 1) -> Int {
    AgeHeader.length(recipients: count) + AgePayload.nonceLength
      + AgePayload.sealedLength(of: length)
  }

  // MARK: - Sealing

  /// Seals bytes for recipients, each of whom can open them.
  ///
  /// - Parameter isArmored: whether the file is armored, as text.
  /// - Throws: what ``AgeHeader/make(for:fileKey:)`` throws.
  package static func seal(
    _ bytes: Span<UInt8>, for recipients: [AgeRecipient], isArmored: Bool = false
  ) throws(AgeError) -> [UInt8] {
    try seal(bytes, AgeHeader.make(for: recipients), isArmored)
  }

  /// Seals bytes with a passphrase.
  ///
  /// - Parameter isArmored: whether the file is armored, as text.
  /// - Throws: what ``AgeHeader/make(for:)`` throws.
  package static func seal(
    _ bytes: Span<UInt8>, with passphrase: AgePassphrase, isArmored: Bool = false
  ) throws(AgeError) -> [UInt8] {
    try seal(bytes, AgeHeader.make(for: passphrase), isArmored)
  }

  private static func seal(
    _ bytes: Span<UInt8>, _ header: (bytes: [UInt8], fileKey: SecretBytes), _ isArmored: Bool
  ) throws(AgeError) -> [UInt8] {
    let nonce = try AgePayload.makeNonce()
    var payload = try AgePayload(fileKey: header.fileKey, nonce: nonce)
    var file = header.bytes + nonce
    let start = file.count
    file += [UInt8](repeating: 0, count: AgePayload.sealedLength(of: bytes.count))
    try unsafe bytes.withUnsafeBytes { (bytes) throws(AgeError) in
      var target = file.mutableSpan
      try unsafe target.withUnsafeMutableBytes { (file) throws(AgeError) in
        try unsafe payload.sealAll(
          bytes, into: UnsafeMutableRawBufferPointer(rebasing: file[start...]))
      }
    }
    return isArmored ? AgeArmor.encode(file.span) : file
  }

  // MARK: - Opening

  /// Opens a file, armored or not, with the identity among several that fits.
  ///
  /// - Throws: what ``AgeArmor/decode(_:)``, ``AgeHeader/init(parsing:)``,
  ///   ``AgeHeader/unwrap(with:)-([AgeIdentity])`` and ``AgePayload/openAll(_:into:)`` throw.
  package static func open(
    _ bytes: Span<UInt8>, with identities: [AgeIdentity]
  ) throws(AgeError) -> [UInt8] {
    try open(bytes) { (header) throws(AgeError) in try header.unwrap(with: identities) }
  }

  /// Opens a file, armored or not, with a passphrase.
  ///
  /// - Throws: what ``AgeArmor/decode(_:)``, ``AgeHeader/init(parsing:)``,
  ///   ``AgeHeader/unwrap(with:)-(AgePassphrase)`` and ``AgePayload/openAll(_:into:)`` throw.
  package static func open(
    _ bytes: Span<UInt8>, with passphrase: AgePassphrase
  ) throws(AgeError) -> [UInt8] {
    try open(bytes) { (header) throws(AgeError) in try header.unwrap(with: passphrase) }
  }

  /// Opens a file that holds a secret, as ``open(_:with:)-(_,[AgeIdentity])`` does.
  package static func openSecret(
    _ bytes: Span<UInt8>, with identities: [AgeIdentity]
  ) throws(AgeError) -> SecretBytes {
    try openSecret(bytes) { (header) throws(AgeError) in try header.unwrap(with: identities) }
  }

  /// Opens a file that holds a secret, as ``open(_:with:)-(_,AgePassphrase)`` does.
  package static func openSecret(
    _ bytes: Span<UInt8>, with passphrase: AgePassphrase
  ) throws(AgeError) -> SecretBytes {
    try openSecret(bytes) { (header) throws(AgeError) in try header.unwrap(with: passphrase) }
  }

  private static func open(
    _ bytes: Span<UInt8>, unwrap: (AgeHeader) throws(AgeError) -> SecretBytes
  ) throws(AgeError) -> [UInt8] {
    try withoutArmor(bytes) { (bytes) throws(AgeError) in
      var opening = try Opening.of(bytes, unwrap)
      var content = [UInt8](repeating: 0, count: opening.chunks.length)
      var target = content.mutableSpan
      try unsafe target.withUnsafeMutableBytes { (target) throws(AgeError) in
        try unsafe opening.openAll(bytes, into: target)
      }
      return content
    }
  }

  private static func openSecret(
    _ bytes: Span<UInt8>, unwrap: (AgeHeader) throws(AgeError) -> SecretBytes
  ) throws(AgeError) -> SecretBytes {
    try withoutArmor(bytes) { (bytes) throws(AgeError) in
      var opening = try Opening.of(bytes, unwrap)
      let length = opening.chunks.length
      return try unsafe SecretBytes(count: length) { (target) throws(AgeError) in
        try unsafe opening.openAll(bytes, into: target)
      }
    }
  }

  /// Calls a closure with the file, without the armor that it may have.
  static func withoutArmor<Answer>(
    _ bytes: Span<UInt8>, _ body: (Span<UInt8>) throws(AgeError) -> Answer
  ) throws(AgeError) -> Answer {
    guard AgeArmor.isArmor(bytes) else { return try body(bytes) }
    let file = try AgeArmor.decode(bytes)
    return try body(file.span)
  }
}

/// A file whose header was opened, and where its chunks are.
private struct Opening: ~Copyable {
  var payload: AgePayload
  /// Where the first chunk begins.
  let start: Int
  let chunks: AgeChunks

  static func of(
    _ bytes: Span<UInt8>, _ unwrap: (AgeHeader) throws(AgeError) -> SecretBytes
  ) throws(AgeError) -> Opening {
    let header = try AgeHeader(parsing: bytes)
    let fileKey = try unwrap(header)
    let start = header.length + AgePayload.nonceLength
    guard bytes.count >= start else { throw .truncatedHeader }
    let nonce = bytes.extracting(header.length..<start).array
    let chunks = try AgeChunks(sealedLength: bytes.count - start)
    return Opening(
      payload: try AgePayload(fileKey: fileKey, nonce: nonce), start: start, chunks: chunks)
  }

  mutating func openAll(
    _ bytes: Span<UInt8>, into target: UnsafeMutableRawBufferPointer
  ) throws(AgeError) {
    try unsafe bytes.withUnsafeBytes { (bytes) throws(AgeError) in
      try unsafe payload.openAll(UnsafeRawBufferPointer(rebasing: bytes[start...]), into: target)
    }
  }
}
