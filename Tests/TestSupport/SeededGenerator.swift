import Foundation

/// Random numbers that can be reproduced: SplitMix64, which is its seed and a counter.
///
/// A test prints ``description`` before it begins, so that a failure, even one that ends the
/// process, can be repeated by setting `CARPACK_SEED`.
package struct SeededGenerator: RandomNumberGenerator, Sendable, CustomStringConvertible {
  /// Where the numbers begin.
  package let seed: UInt64
  private var state: UInt64

  /// The numbers that follow from `seed`.
  package init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// The numbers that follow from the environment variable `CARPACK_SEED`, or from a new seed
  /// without it.
  package init() {
    let given = ProcessInfo.processInfo.environment["CARPACK_SEED"]
    self.init(seed: given.flatMap { UInt64($0) } ?? UInt64.random(in: .min ... .max))
  }

  /// The next number.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var word = state
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// How to have the same numbers again.
  package var description: String { "CARPACK_SEED=\(seed)" }
}
