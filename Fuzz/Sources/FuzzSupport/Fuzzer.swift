/// What an executable of this package is: something that is done with any bytes, and bytes to begin
/// with.
///
/// The C functions that libFuzzer calls hand everything on to the two functions below.
package protocol Fuzzer {
  /// Does it; ends the process if what comes of it cannot be.
  static func run(_ bytes: Span<UInt8>)

  /// Inputs to begin with; `folder` is the corpus, or nil when there is none.
  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]]
}

extension Fuzzer {
  /// `LLVMFuzzerTestOneInput`.
  package static func test(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // A copy has no bytes behind its end that somebody could read unnoticed.
    let bytes = unsafe [UInt8](UnsafeBufferPointer(start: data, count: count))
    run(bytes.span)
    return 0
  }

  /// `LLVMFuzzerInitialize`: writes the seeds and ends the process, if `CARPACK_SEEDS` names a
  /// folder for them.
  package static func initialize() -> CInt {
    guard let folder = Environment["CARPACK_SEEDS"] else { return 0 }
    do {
      let seeds = try seeds(SeedCorpus())
      for (number, seed) in seeds.enumerated() {
        try File.write(seed.span, to: "\(folder)/seed-\(number)")
      }
      print("\(Self.self): \(seeds.count) seeds")
      Environment.leave(0)
    } catch {
      print("\(Self.self): no seeds: \(error)")
      Environment.leave(1)
    }
  }
}

/// Ends the process, which libFuzzer takes for a finding, unless `condition` holds.
package func require(_ condition: Bool, _ sentence: @autoclosure () -> String) {
  if !condition { fatalError(sentence()) }
}

extension Span<UInt8> {
  /// The bytes on their own.
  package var copy: [UInt8] { unsafe withUnsafeBufferPointer { unsafe [UInt8]($0) } }
}
