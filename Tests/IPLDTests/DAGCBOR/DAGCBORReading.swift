import IPLD
import Testing

/// What decoder and scanner make of the same bytes.
struct DAGCBORReading {
  let bytes: [UInt8]
  let decoded: Result<IPLDValue, DAGCBORError>
  let checked: Result<DAGCBORSummary, DAGCBORError>

  init(_ bytes: [UInt8], _ profile: DAGCBORProfile = .dagCBOR) {
    self.bytes = bytes
    decoded = Result { () throws(DAGCBORError) in
      try DAGCBORDecoder.decode(bytes.span, profile: profile)
    }
    checked = Result { () throws(DAGCBORError) in
      var scanner = DAGCBORScanner(profile: profile)
      return try scanner.check(bytes.span)
    }
  }

  /// Whether the bytes are accepted.
  var isAccepted: Bool { error == nil }

  /// Why the bytes are refused.
  var error: DAGCBORError? {
    if case .failure(let error) = decoded { error } else { nil }
  }

  /// What must hold for any bytes whatever and does not: nil when all is well.
  ///
  /// The scanner agrees with the decoder, an error lies within the bytes, and what was decoded
  /// encodes to the same bytes.
  var inconsistency: String? {
    switch (decoded, checked) {
    case (.failure(let error), .failure(let other)):
      if error != other { return "the decoder says \(error), the scanner says \(other)" }
      if !(0...bytes.count).contains(error.offset) { return "outside the bytes: \(error)" }
      return nil
    case (.success(let value), .success(let summary)):
      if summary.isMap != (value.map != nil) { return "the scanner is wrong about isMap" }
      if summary.linkCount != value.linkCount { return "the scanner counts links wrongly" }
      do {
        let again = try DAGCBOREncoder.encode(value)
        return again == bytes ? nil : "encoded again: \(Hex.encode(again))"
      } catch {
        return "cannot be encoded again: \(error)"
      }
    case (.failure(let error), .success): return "only the decoder refuses: \(error)"
    case (.success, .failure(let error)): return "only the scanner refuses: \(error)"
    }
  }
}

extension IPLDValue {
  /// How many links there are in it.
  var linkCount: Int {
    switch self {
    case .link: 1
    case .array(let items): items.reduce(0) { $0 + $1.linkCount }
    case .map(let map): map.entries.reduce(0) { $0 + $1.value.linkCount }
    default: 0
    }
  }
}
