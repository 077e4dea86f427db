import IPLD
import TestSupport
import Testing

/// The result of reading a CAR: its roots, the blocks up to the end or the first error, and that
/// error.
struct CARReading: Equatable {
  private(set) var roots: [CID]?
  private(set) var blocks: [Block] = []
  private(set) var error: CARError?

  /// Reads a CAR that lies in memory, of either version, section by section.
  init(_ bytes: [UInt8], limits: CARLimits = .streaming, verifying: Bool = true) {
    do throws(CARError) {
      let payload = try CARVersion2.payload(of: bytes.span)
      let span = bytes.span.extracting(0..<payload.upperBound)
      let header = try CARHeader(span, at: payload.lowerBound, limits: limits)
      roots = header.roots
      var cursor = CARCursor(header: header, payload: payload, limits: limits)
      while let (section, cid) = try cursor.next(in: span) {
        let body = span.extracting(section.bodyRange)
        if verifying, cid.verify(body) == .mismatch {
          throw CARError(.contentMismatch(cid), offset: section.start)
        }
        blocks.append(Block(cid: cid, bytes: Array(bytes[section.bodyRange])))
      }
      #expect(cursor.offset == payload.upperBound)
    } catch {
      self.error = error
    }
  }

  /// Reads a CAR that comes in pieces of `size` bytes.
  init(
    _ bytes: [UInt8], inChunksOf size: Int, limits: CARLimits = .streaming, verifying: Bool = true
  ) {
    var rest = bytes[...]
    var reader = CARReader<Never>(limits: limits, verifying: verifying) {
      guard !rest.isEmpty else { return nil }
      defer { rest = rest.dropFirst(size) }
      return Array(rest.prefix(size))
    }
    do {
      while let block = try reader.next() { blocks.append(block) }
    } catch {
      switch error {
      case .car(let error): self.error = error
      }
    }
    roots = reader.header?.roots
  }

  /// The CAR of version 1 that has these roots and blocks.
  var written: [UInt8] {
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: roots ?? [], to: &bytes)
    for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
    return bytes
  }

  /// The CIDs as the label files hash them.
  func digest(ofLines line: (Block) -> String) -> String {
    let text = blocks.map { line($0) + "\n" }.joined()
    return SHA256.digest(of: Array(text.utf8).span).description
  }
}

/// A CAR put together for a test.
enum SampleCAR {
  /// Blocks of every kind of CID: of AT Protocol's, of version 0, identity, and one whose function
  /// is not known.
  static let blocks: [Block] = {
    let bodies: [[UInt8]] = [
      [0xa0], Array("hello world".utf8), [], [UInt8](repeating: 7, count: 300),
    ]
    var blocks = bodies.map { Block(cid: CID(codec: .dagCBOR, hashing: $0.span), bytes: $0) }
    let digest = SHA256.digest(of: [1].span)
    let text = Base58.encode([0x12, 0x20] + digest.bytes)
    if let version0 = try? CID(text) { blocks.append(Block(cid: version0, bytes: [1])) }
    let identity = Multihash(function: .identity, digest: [1, 2, 3])
    blocks.append(Block(cid: CID(codec: .raw, multihash: identity), bytes: [1, 2, 3]))
    let unknown = Multihash(function: HashFunction(rawValue: 0x1e), digest: digest.bytes)
    blocks.append(Block(cid: CID(codec: .raw, multihash: unknown), bytes: [4, 5]))
    return blocks
  }()

  static let roots = [blocks[0].cid, blocks[4].cid]

  /// The sample of version 1, and where each of its sections starts; the last is the end.
  static let (version1, starts): ([UInt8], [Int]) = {
    var bytes = CARHeader(roots: roots).bytes
    var starts = [bytes.count]
    for block in blocks {
      CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes)
      starts.append(bytes.count)
    }
    return (bytes, starts)
  }()

  /// A CAR of version 2 around `inner`, which begins at `start` and is followed by something that
  /// is not read.
  static func version2(
    _ inner: [UInt8], start: UInt64 = 60, length: UInt64? = nil, tail: [UInt8] = [0xff, 0xff]
  ) -> [UInt8] {
    var bytes = CARVersion2.pragma + [UInt8](repeating: 0, count: 16)
    let numbers: [UInt64] = [start, length ?? UInt64(inner.count), 0]
    for number in numbers {
      for shift in stride(from: 0, to: 64, by: 8) {
        bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
      }
    }
    bytes += [UInt8](repeating: 0xee, count: max(0, Int(clamping: min(start, 1000)) - bytes.count))
    return bytes + inner + tail
  }
}
