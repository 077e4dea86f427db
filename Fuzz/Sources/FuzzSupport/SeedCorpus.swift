import Foundation
import IPLD

/// The folder of vectors and real repositories that `CARPACK_CORPUS` names.
///
/// Seeds are found in it, not listed: every file of a kind that is small enough, the smallest
/// first.
package struct SeedCorpus {
  private let root: String

  /// The corpus, if there is one.
  init?() {
    guard let root = Environment["CARPACK_CORPUS"] else { return nil }
    self.root = root
  }

  /// Up to `count` files whose names end with `suffix`, of at most `limit` bytes each.
  package func files(_ suffix: String, limit: Int, count: Int = 400) throws -> [[UInt8]] {
    guard let walk = FileManager.default.enumerator(atPath: root) else { return [] }
    var found: [(size: Int, path: String)] = []
    for case let path as String in walk where path.hasSuffix(suffix) {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(root)/\(path)")
      guard let size = attributes[.size] as? Int, size <= limit else { continue }
      found.append((size, path))
    }
    return try found.sorted { $0 < $1 }.prefix(count).map {
      [UInt8](try Data(contentsOf: URL(filePath: "\(root)/\($0.path)")))
    }
  }

  /// The bytes of all labelled CBOR vectors that are written out in hexadecimal.
  package func labelledCBOR() throws -> [[UInt8]] {
    struct Label: Decodable {
      let hex: String?
    }
    let data = try Data(contentsOf: URL(filePath: "\(root)/cbor/cbor-labels.json"))
    return try JSONDecoder().decode([Label].self, from: data).compactMap { label in
      let digits = label.hex.map { $0.compactMap(\.hexDigitValue) } ?? []
      guard !digits.isEmpty else { return nil }
      return stride(from: 0, to: digits.count - 1, by: 2).map {
        UInt8(digits[$0] << 4 | digits[$0 + 1])
      }
    }
  }

  /// Blocks out of the repositories, each once, that `isWanted`.
  package func blocks(limit: Int, count: Int, isWanted: (Span<UInt8>) -> Bool) throws -> [[UInt8]] {
    var found: Set<[UInt8]> = []
    for bytes in try files(".car", limit: 1 << 20) {
      // What is no CAR has no blocks for us.
      guard let payload = try? CARVersion2.payload(of: bytes.span),
        let header = try? CARHeader(bytes.span, at: payload.lowerBound)
      else { continue }
      var cursor = CARCursor(header: header, payload: payload)
      while let (section, _) = try? cursor.next(in: bytes.span) {
        let body = bytes.span.extracting(section.bodyRange)
        if body.count <= limit, isWanted(body) { found.insert([UInt8](bytes[section.bodyRange])) }
      }
    }
    return Array(found.sorted { ($0.count, $0.hashValue) < ($1.count, $1.hashValue) }.prefix(count))
  }
}
