internal import Age
internal import Archive
internal import IPLD

/// What can be read of a piece though it does not open, or does not lie where it should.
extension SealedSource {
  /// Decrypts a chunk that does not open.
  ///
  /// - Returns: Whether it did: the file may end before it.
  func openUnproven(
    _ number: Int, _ piece: Piece, into target: UnsafeMutableRawBufferPointer
  ) throws -> Bool {
    let stored = piece.chunks.sealedRange(of: number)
    let place =
      piece.payloadOffset + stored.lowerBound..<piece.payloadOffset + stored.upperBound
    guard place.upperBound <= file.count else { return false }
    var payload = try provenPayload(of: piece)
    return try file.withBytes(reading: [place]) { file in
      try unsafe file.extracting(place).withUnsafeBytes { sealed in
        try unsafe payload.openUnverified(
          sealed, index: UInt64(number), isLast: piece.isLast(number), into: target)
      }
      return true
    }
  }

  /// What opens the other chunks of a piece: that of the table, unless it was written again and only
  /// its header knows the nonce.
  private func provenPayload(of piece: Piece) throws -> AgePayload {
    guard let header = try headerPiece(piece), header.nonce != piece.nonce else {
      return try piece.payload()
    }
    let frame = piece.frame.clamped(to: 0..<file.count)
    let count = try file.withBytes(reading: [frame]) { try piece.openingCount(in: $0) }
    return try count == 0 ? header.payload() : piece.payload()
  }

  /// The frame of a piece as it was written, as far as its bytes are left, and are not in their
  /// places: chunks that do not open are whatever lies there.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func storedFrame(of piece: Piece) throws -> [UInt8] {
    var opening = PieceOpening(piece)
    var bytes = stored(piece.frame.lowerBound..<piece.payloadOffset)
    var content = [UInt8](repeating: 0, count: AgePayload.chunkLength)
    for number in 0..<piece.chunks.count {
      let chunk = piece.chunks.sealedRange(of: number)
      let count = piece.chunks.range(of: number).count
      var place = piece.payloadOffset + chunk.lowerBound..<piece.payloadOffset + chunk.upperBound
      let opens = try unsafe content.withUnsafeMutableBytes {
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: $0[..<count])
        return try unsafe open(number, &opening, into: target)
      }
      if opens, opening.isShifted, let shift = opening.shift {
        place = place.lowerBound + shift..<place.upperBound + shift
      }
      bytes += stored(place)
    }
    return bytes + [UInt8](repeating: 0, count: SealedFrame.checksumLength)
  }

  /// Bytes of the file, and zeros for those behind its end.
  private func stored(_ range: Range<Int>) -> [UInt8] {
    let part = range.clamped(to: 0..<file.count)
    let bytes = file.withBytes(reading: [part]) { $0.array(part) }
    return bytes + [UInt8](repeating: 0, count: range.count - part.count)
  }
}
