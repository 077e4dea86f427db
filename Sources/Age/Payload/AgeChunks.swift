/// Where the chunks of a payload lie, sealed and opened: arithmetic on lengths.
///
/// Sealed positions count from the first chunk, after the nonce.
package struct AgeChunks: Hashable, Sendable {
  /// How many bytes the content has.
  package let length: Int
  /// How many chunks there are: at least one.
  package let count: Int

  /// The chunks of a content.
  ///
  /// - Precondition: `length` is not negative, and the sealed length is an `Int`.
  package init(length: Int) {
    precondition(length >= 0)
    self.length = length
    count = max(1, (length - 1) / AgePayload.chunkLength + 1)
  }

  /// The chunks of a payload of this length, without its nonce.
  ///
  /// - Throws: ``AgeError/truncatedPayload`` if it ends within a tag or has no chunk,
  ///   ``AgeError/emptyLastChunk``.
  package init(sealedLength: Int) throws(AgeError) {
    let (full, rest) = max(0, sealedLength).quotientAndRemainder(
      dividingBy: AgePayload.sealedChunkLength)
    guard rest == 0 ? full > 0 : rest >= AgePayload.tagLength else { throw .truncatedPayload }
    guard rest != AgePayload.tagLength || full == 0 else { throw .emptyLastChunk }
    count = full + (rest > 0 ? 1 : 0)
    length = sealedLength - count * AgePayload.tagLength
  }

  /// How many bytes the payload has, without its nonce.
  package var sealedLength: Int { length + count * AgePayload.tagLength }

  /// Whether a chunk is the last.
  package func isLast(_ index: Int) -> Bool { index == count - 1 }

  /// Where the content of a chunk lies in the whole content.
  package func range(of index: Int) -> Range<Int> {
    precondition(index >= 0 && index < count)
    let start = index * AgePayload.chunkLength
    return start..<min(start + AgePayload.chunkLength, length)
  }

  /// Where a sealed chunk lies.
  package func sealedRange(of index: Int) -> Range<Int> {
    precondition(index >= 0 && index < count)
    let start = index * AgePayload.sealedChunkLength
    return start..<min(start + AgePayload.sealedChunkLength, sealedLength)
  }

  /// The chunks that hold a range of the content; none if it is empty.
  package func covering(_ range: Range<Int>) -> Range<Int> {
    precondition(range.lowerBound >= 0 && range.upperBound <= length)
    let first = range.lowerBound / AgePayload.chunkLength
    guard !range.isEmpty else { return first..<first }
    return first..<((range.upperBound - 1) / AgePayload.chunkLength + 1)
  }
}

extension AgePayload {
  /// How many bytes a content of this many takes when it is sealed, without the nonce.
  package static func sealedLength(of length: Int) -> Int {
    AgeChunks(length: length).sealedLength
  }

  /// How many bytes of content a payload of this many has, without the nonce.
  ///
  /// - Throws: ``AgeError/truncatedPayload``, ``AgeError/emptyLastChunk``.
  package static func length(ofSealed sealedLength: Int) throws(AgeError) -> Int {
    try AgeChunks(sealedLength: sealedLength).length
  }
}
