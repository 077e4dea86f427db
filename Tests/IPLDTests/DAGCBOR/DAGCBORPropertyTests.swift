import IPLD
import TestSupport
import Testing

@Suite struct `Random DAG-CBOR` {
  @Test func `of any value decodes to that value`() throws {
    var generator = SeededGenerator()
    print("values: \(generator)")
    for _ in 0..<4000 {
      let value = IPLDValue.random(using: &generator)
      let bytes = try DAGCBOREncoder.encode(value)
      let reading = DAGCBORReading(bytes)
      guard case .success(value) = reading.decoded, reading.inconsistency == nil else {
        Issue.record("\(generator): \(Hex.encode(bytes)): \(reading.inconsistency ?? "not equal")")
        return
      }
    }
  }

  @Test func `that was tampered with is refused, or is somebody's encoding all the same`() throws {
    var generator = SeededGenerator()
    print("mutations: \(generator)")
    var (accepted, refused) = (0, 0)
    for _ in 0..<4000 {
      let bytes = try DAGCBOREncoder.encode(.random(using: &generator))
      for profile in DAGCBORProfile.allCases {
        let mutated = bytes.mutated(using: &generator)
        let reading = DAGCBORReading(mutated, profile)
        if let inconsistency = reading.inconsistency {
          Issue.record("\(generator): \(Hex.encode(mutated)): \(inconsistency)")
          return
        }
        if reading.isAccepted { accepted += 1 } else { refused += 1 }
      }
    }
    #expect(accepted > 0 && refused > 0, "\(generator): one kind of answer says nothing")
  }

  @Test func `that was never DAG-CBOR gets an answer`() {
    var generator = SeededGenerator()
    print("noise: \(generator)")
    // Heads of every kind are more telling than bytes of every kind.
    let heads: [UInt8] = [
      0x00, 0x18, 0x1b, 0x20, 0x41, 0x58, 0x61, 0x62, 0x78, 0x81, 0x82, 0x98, 0x9f, 0xa1, 0xa2,
      0xb8, 0xc0, 0xd8, 0x2a, 0xf4, 0xf6, 0xf9, 0xfb, 0xff,
    ]
    for _ in 0..<20000 {
      let bytes = (0..<Int.random(in: 0...24, using: &generator)).map { _ in
        Bool.random(using: &generator)
          ? heads.randomElement(using: &generator) ?? 0
          : UInt8.random(in: .min ... .max, using: &generator)
      }
      let profile: DAGCBORProfile = Bool.random(using: &generator) ? .dagCBOR : .atproto
      if let inconsistency = DAGCBORReading(bytes, profile).inconsistency {
        Issue.record("\(generator): \(Hex.encode(bytes)): \(inconsistency)")
        return
      }
    }
  }
}

extension Collection<UInt8> {
  /// These bytes with one to three small accidents.
  func mutated(using generator: inout some RandomNumberGenerator) -> [UInt8] {
    var bytes = Array(self)
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      guard let index = bytes.indices.randomElement(using: &generator) else { return [0x80] }
      switch Int.random(in: 0..<7, using: &generator) {
      case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 1: bytes[index] = .random(in: .min ... .max, using: &generator)
      case 2: bytes.insert(.random(in: .min ... .max, using: &generator), at: index)
      case 3: bytes.remove(at: index)
      case 4: bytes.removeSubrange(index...)
      case 5: bytes.append(contentsOf: bytes[index...])
      default: bytes.swapAt(index, bytes.count - 1)
      }
    }
    return bytes
  }
}
