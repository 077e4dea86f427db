import FuzzSupport
import IPLD

/// CARs that arrive: whatever the pieces, the verdict is the same as on the whole, and the same as
/// that of the cursor.
///
/// The last byte of the input says with its lowest bit whether hashes are made to hold again, and
/// with the others, together with the byte before it, how long the pieces are.
enum FuzzCARStream: Fuzzer {
  /// What checking came to.
  private struct Verdict: Equatable {
    var header: CARHeader?
    var sectionCount = 0
    var error: CARError?
  }

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count >= 2 else { return }
    var car = bytes.extracting(droppingLast: 2).copy
    let last = bytes[bytes.count - 1]
    if last & 1 == 1 { repair(&car) }
    let whole = check([car], of: car.count)
    if car.count >= CARVersion2.pragma.count, car.starts(with: CARVersion2.pragma) {
      require(whole.error != nil, "a CAR of version 2 is taken for one of version 1")
    } else {
      let read = read(car)
      require(read == whole, "the cursor says \(read), the checker \(whole)")
    }
    let seed = UInt64(last) << 8 | UInt64(bytes[bytes.count - 2])
    let pieces = split(car, seed: seed)
    let streamed = check(pieces, of: car.count)
    require(
      streamed == whole, "in \(pieces.count) pieces \(streamed), in one \(whole)")
  }

  private static func check(_ pieces: [[UInt8]], of count: Int) -> Verdict {
    var checker = CARStreamChecker()
    var verdict = Verdict()
    do throws(CARError) {
      for piece in pieces { try checker.take(piece.span) }
      require(checker.byteCount == count, "bytes are counted wrongly")
      try checker.finish()
    } catch {
      verdict.error = error
      // A CID of two thousand bytes is one.
      requireLegible("\(error)", limit: 4000)
    }
    verdict.header = checker.header
    verdict.sectionCount = checker.sectionCount
    return verdict
  }

  private static func read(_ car: [UInt8]) -> Verdict {
    var verdict = Verdict()
    do throws(CARError) {
      let header = try CARHeader(car.span, limits: .streaming)
      verdict.header = header
      var cursor = CARCursor(header: header, payload: 0..<car.count, limits: .streaming)
      while let (section, cid) = try cursor.next(in: car.span) {
        guard cid.verify(car.span.extracting(section.bodyRange)) != .mismatch else {
          throw CARError(.contentMismatch(cid), offset: section.start)
        }
        verdict.sectionCount += 1
      }
    } catch {
      verdict.error = error
    }
    return verdict
  }

  /// Pieces of lengths that follow from a seed: empty ones, single bytes, and longer ones.
  private static func split(_ bytes: [UInt8], seed: UInt64) -> [[UInt8]] {
    var word = seed
    var pieces: [[UInt8]] = []
    var place = 0
    while place < bytes.count {
      word = word &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let longest = word >> 40 & 1 == 0 ? 4 : 1 << (word >> 60)
      let end = min(bytes.count, place + Int((word >> 41) % UInt64(longest)))
      pieces.append(Array(bytes[place..<end]))
      place = end
    }
    return pieces
  }

  /// Writes the digest of each block into the CID before it, where that is of SHA-256.
  private static func repair(_ car: inout [UInt8]) {
    guard let header = try? CARHeader(car.span) else { return }
    var cursor = CARCursor(header: header, payload: 0..<car.count)
    while let (section, cid) = try? cursor.next(in: car.span) {
      guard cid.multihash.sha256 != nil else { continue }
      let digest = SHA256.digest(of: car.span.extracting(section.bodyRange)).bytes
      car.replaceSubrange(
        section.cidRange.upperBound - 32..<section.cidRange.upperBound, with: digest)
    }
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    let empty = CARHeader(roots: []).bytes
    var section: [UInt8] = []
    let body: [UInt8] = [0xa0]
    let cid = CID(codec: .dagCBOR, hashing: body.span)
    section = [UInt8(cid.bytes.count + body.count)] + cid.bytes + body
    let small = CARHeader(roots: [cid]).bytes + section + section
    let found = try corpus?.files(".car", limit: 32 << 10) ?? []
    return ([empty, small] + found).enumerated().map { number, car in
      car + [UInt8(truncatingIfNeeded: number * 37), UInt8(truncatingIfNeeded: number)]
    }
  }
}
