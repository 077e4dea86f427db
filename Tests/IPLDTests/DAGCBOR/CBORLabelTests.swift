import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `DAG-CBOR vectors of many implementations` {
  @Test(arguments: DAGCBORProfile.allCases)
  func `are accepted and refused as labelled`(profile: DAGCBORProfile) throws {
    let labels = try CBORLabel.all()
    var seen: Set<CBORLabel.Verdict> = []
    for label in labels {
      let bytes = try label.payload()
      try #require(SHA256.digest(of: bytes.span).description == label.sha256, "\(label)")
      let reading = DAGCBORReading(bytes, profile)
      if let inconsistency = reading.inconsistency {
        Issue.record("\(label): \(inconsistency)")
      }
      let verdict = label.verdict(profile)
      seen.insert(verdict)
      switch verdict {
      case .accept:
        #expect(reading.error == nil, "\(label)")
        if let isMap = label.isMap, case .success(let summary) = reading.checked {
          #expect(summary.isMap == isMap, "\(label)")
        }
      case .reject: #expect(reading.error != nil, "\(label)")
      // Accepting and rejecting are both right; `inconsistency` has compared the readers.
      case .implementationLimit: break
      }
    }
    #expect(seen.isSuperset(of: [.accept, .reject]), "the labels say nothing")
  }

  @Test func `what AT Protocol accepts is DAG-CBOR`() throws {
    let labels = try CBORLabel.all().filter { $0.atprotoDataModel == .accept }
    try #require(!labels.isEmpty)
    for label in labels {
      let bytes = try label.payload()
      let strict = try DAGCBORDecoder.decode(bytes.span, profile: .dagCBOR)
      let narrow = try DAGCBORDecoder.decode(bytes.span, profile: .atproto)
      #expect(strict == narrow, "\(label)")
    }
  }

  @Test func `are refused when they are cut short`() throws {
    // Not the few of a megabyte: what they are made of, the others are too.
    let labels = try CBORLabel.all().filter { $0.strictDAGCBOR == .accept && $0.bytes <= 8192 }
    try #require(!labels.isEmpty)
    for label in labels {
      let bytes = try label.payload()
      for length in 0..<bytes.count where length < 128 || bytes.count - length < 32 {
        let reading = DAGCBORReading(Array(bytes.prefix(length)))
        guard reading.error == DAGCBORError(.truncated, offset: length),
          reading.inconsistency == nil
        else {
          Issue.record(
            "\(label), its first \(length) bytes: \(reading.decoded), \(reading.inconsistency ?? "")"
          )
          break
        }
      }
    }
  }
}
