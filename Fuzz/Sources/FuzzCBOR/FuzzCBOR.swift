import FuzzSupport
import IPLD

/// DAG-CBOR: the scanner and the decoder accept the same bytes, under both profiles, and what is
/// decoded encodes to the bytes it came from.
enum FuzzCBOR: Fuzzer {
  static func run(_ bytes: Span<UInt8>) {
    var accepted: [DAGCBORProfile] = []
    for profile in DAGCBORProfile.allCases {
      let scanned = scan(bytes, profile)
      switch (scanned, decode(bytes, profile)) {
      case (.success(let summary), .success(let value)):
        accepted.append(profile)
        check(value, bytes)
        require(summary.isMap == (value.map != nil), "the scanner and the decoder differ on maps")
        require(summary.linkCount == links(value), "the scanner and the decoder count other links")
      case (.failure(let left), .failure(let right)):
        require(left == right, "the scanner says \(left), the decoder \(right)")
      default:
        fatalError("the scanner or the decoder accepts what the other does not")
      }
    }
    require(
      !accepted.contains(.atproto) || accepted.contains(.dagCBOR),
      "AT Protocol's profile accepts what is no DAG-CBOR")
  }

  private static func scan(_ bytes: Span<UInt8>, _ profile: DAGCBORProfile)
    -> Result<DAGCBORSummary, DAGCBORError>
  {
    var scanner = DAGCBORScanner(profile: profile)
    do throws(DAGCBORError) {
      let summary = try scanner.check(bytes, watching: ShortKey("$type"))
      // A scanner that is used again says the same.
      let again = try scanner.check(bytes, watching: ShortKey("$type"))
      require(again == summary, "a scanner says something else the second time")
      return .success(summary)
    } catch {
      return .failure(error)
    }
  }

  private static func decode(_ bytes: Span<UInt8>, _ profile: DAGCBORProfile)
    -> Result<IPLDValue, DAGCBORError>
  {
    do throws(DAGCBORError) {
      return .success(try DAGCBORDecoder.decode(bytes, profile: profile))
    } catch {
      return .failure(error)
    }
  }

  private static func check(_ value: IPLDValue, _ bytes: Span<UInt8>) {
    do throws(DAGCBORError) {
      let encoded = try DAGCBOREncoder.encode(value)
      require(encoded == bytes.copy, "decoding and encoding changes the bytes")
    } catch {
      fatalError("what was decoded does not encode: \(error)")
    }
  }

  private static func links(_ value: IPLDValue) -> Int {
    switch value {
    case .link: 1
    case .array(let items): items.reduce(0) { $0 + links($1) }
    case .map(let map): map.entries.reduce(0) { $0 + links($1.value) }
    default: 0
    }
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    guard let corpus else { return [[0xf6], [0x82, 0xa0, 0x80]] }
    return try corpus.labelledCBOR() + corpus.blocks(limit: 4096, count: 400) { _ in true }
  }
}
