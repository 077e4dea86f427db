internal import Age
internal import Archive

/// The keys and the header of one age file in a frame, known before its content is.
///
/// It is used once: no two contents are sealed with one file key and nonce.
struct FrameSealing: Sendable {
  /// The key of the age file, and the nonce of its payload.
  let fileKey: SecretBytes
  let nonce: [UInt8]
  private let header: [UInt8]

  /// - Parameters:
  ///   - header: The age file's header, and its file key.
  /// - Throws: `AgeError` if the system lacks what age needs.
  init(_ header: (bytes: [UInt8], fileKey: SecretBytes)) throws {
    (self.header, fileKey) = header
    nonce = try AgePayload.makeNonce()
  }

  /// Makes a new header and file key.
  ///
  /// - Throws: as the other does.
  init(for identity: AgeIdentity) throws {
    try self.init(AgeHeader.make(for: [identity.recipient]))
  }

  private func contentLength(_ count: Int) -> Int {
    header.count + nonce.count + AgePayload.sealedLength(of: count)
  }

  /// How long the frame of a piece of this many bytes is.
  func pieceFrameLength(_ count: Int) -> Int { SealedFrame.emptyLength + contentLength(count) }

  /// The frame.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func frame(
    _ kind: SealedFrame.Kind, _ plain: Span<UInt8>, number: Int, plainOffset: Int
  ) throws -> [UInt8] {
    var payload = try AgePayload(fileKey: fileKey, nonce: nonce)
    let length = AgePayload.sealedLength(of: plain.count)
    return try SealedFrame.bytes(
      kind, number: UInt64(number), plainOffset: UInt64(plainOffset),
      reserving: contentLength(plain.count)
    ) { bytes in
      bytes += header
      bytes += nonce
      try bytes.append(addingCapacity: length) { (output: inout OutputSpan<UInt8>) in
        try unsafe output.withUnsafeMutableBufferPointer { target, count in
          try unsafe plain.withUnsafeBytes { plain in
            try unsafe payload.sealAll(plain, into: UnsafeMutableRawBufferPointer(target))
          }
          count = length
        }
      }
    }
  }
}

extension FrameSealing {
  /// The frame of a piece whose content is lost: it does not open, and its checksum does not match,
  /// so that it is never taken for what was written.
  func lostFrame(_ count: Int, number: Int, plainOffset: Int) -> [UInt8] {
    var bytes = SealedFrame.bytes(
      .piece, number: UInt64(number), plainOffset: UInt64(plainOffset),
      reserving: contentLength(count)
    ) { bytes in
      bytes += header
      bytes += nonce
      bytes.append(contentsOf: repeatElement(0, count: AgePayload.sealedLength(of: count)))
    }
    bytes[bytes.count - 1] ^= 0xff
    return bytes
  }
}

extension Piece {
  /// A piece that is sealed so.
  init(frame: Range<Int>, plain: Range<Int>, _ sealing: FrameSealing) {
    self.init(frame: frame, plain: plain, fileKey: sealing.fileKey, nonce: sealing.nonce)
  }
}
