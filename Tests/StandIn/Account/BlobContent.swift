package import IPLD
import TestSupport

/// A blob of an account: bytes that are there, or this many bytes of noise that follow from a seed
/// and are made when they are sent.
package struct BlobContent: Sendable {
  /// How many bytes are made at a time.
  static let tile = 64 << 10

  /// What names it.
  package let cid: CID
  /// How many bytes it has.
  package let size: Int
  /// Its media type.
  package let mimeType: String

  private enum Source {
    case bytes([UInt8])
    case noise(seed: UInt64, prefix: [UInt8])
  }

  private let source: Source

  /// A blob of these bytes.
  package init(_ bytes: [UInt8], mimeType: String) {
    cid = CID(codec: .raw, hashing: bytes.span)
    size = bytes.count
    self.mimeType = mimeType
    source = .bytes(bytes)
  }

  /// A blob of noise, which cannot be compressed and of which no two seeds share a part.
  ///
  /// It begins as files of its media type do, where there is room for it.
  package init(noise seed: UInt64, size: Int, mimeType: String = "image/png") {
    let prefix: [UInt8] =
      switch mimeType {
      case "image/png": [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
      case "image/jpeg": [0xff, 0xd8, 0xff, 0xe0]
      case "video/mp4": [0, 0, 0, 0x18] + Array("ftypisom".utf8)
      default: []
      }
    let source = Source.noise(seed: seed, prefix: Array(prefix.prefix(size)))
    var hash = SHA256()
    Self.forEachPiece(of: source, in: 0..<size) { hash.update($0) }
    cid = CID(codec: .raw, digest: hash.finish())
    self.size = size
    self.mimeType = mimeType
    self.source = source
  }

  /// All of its bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    forEachPiece { piece in
      for index in piece.indices { bytes.append(piece[index]) }
    }
    return bytes
  }

  /// Hands out a range of its bytes piece by piece.
  package func forEachPiece(in range: Range<Int>? = nil, _ body: (Span<UInt8>) throws -> Void)
    rethrows
  {
    try Self.forEachPiece(of: source, in: range ?? 0..<size, body)
  }

  private static func forEachPiece(
    of source: Source, in range: Range<Int>, _ body: (Span<UInt8>) throws -> Void
  ) rethrows {
    switch source {
    case .bytes(let bytes): try body(bytes.span.extracting(range))
    case .noise(let seed, let prefix):
      var words = noise
      var start = range.lowerBound
      while start < range.upperBound {
        let number = start / tile
        // A tile is the same noise everywhere, and the number that it is combined with is the
        // tile's own.
        var generator = SeededGenerator(seed: seed &+ UInt64(number) &* 0xd1b5_4a32_d192_ed03)
        let key = generator.next()
        for index in words.indices { words[index] = noise[index] ^ key }
        let end = min(range.upperBound, (number + 1) * tile)
        let place = (start - number * tile)..<(end - number * tile)
        try unsafe words.withUnsafeMutableBytes { buffer in
          if number == 0 { unsafe buffer.copyBytes(from: prefix) }
          let bytes = unsafe Span<UInt8>(_unsafeBytes: UnsafeRawBufferPointer(buffer))
          try body(bytes.extracting(place))
        }
        start = end
      }
    }
  }

  /// The random bytes from which all tiles are made.
  private static let noise: [UInt64] = {
    var generator = SeededGenerator(seed: 0x0b10_b0b1)
    return (0..<tile / 8).map { _ in generator.next().littleEndian }
  }()
}
