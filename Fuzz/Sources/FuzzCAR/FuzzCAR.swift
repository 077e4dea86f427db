import ATProtocol
import FuzzSupport
import IPLD

/// CARs: one that lies in memory and one that arrives in chunks are read the same way, and a repository in one can be
/// inspected whatever it says.
///
/// The last byte of the input says how long the chunks are.
enum FuzzCAR: Fuzzer {
  /// What reading came to.
  private struct Outcome: Equatable {
    var blocks: [Block] = []
    var error: CARError?
  }

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    let car = bytes.extracting(droppingLast: 1)
    let chunk = Int(bytes[bytes.count - 1]) + 1
    let isWrapped = car.count >= CARVersion2.pragma.count && isVersion2(car)
    for verifying in [true, false] {
      let whole = readWhole(car, verifying: verifying)
      let streamed = readInChunks(car, of: chunk, verifying: verifying)
      if isWrapped {
        // Only the end of the stream tells what a header of version 2 promises too much.
        require((whole.error == nil) == (streamed.error == nil), "only one of them fails")
        if whole.error == nil { require(whole == streamed, "they read other blocks") }
      } else {
        require(
          whole == streamed,
          "\(whole.error as Any) in memory, \(streamed.error as Any) in chunks")
      }
      inspect(car, verifying: verifying, whole)
    }
  }

  private static func isVersion2(_ car: Span<UInt8>) -> Bool {
    for (index, byte) in CARVersion2.pragma.enumerated() where car[index] != byte { return false }
    return true
  }

  private static func readWhole(_ car: Span<UInt8>, verifying: Bool) -> Outcome {
    var outcome = Outcome()
    do throws(CARError) {
      let payload = try CARVersion2.payload(of: car)
      let inner = car.extracting(0..<payload.upperBound)
      let header = try CARHeader(inner, at: payload.lowerBound, limits: .streaming)
      let stored = inner.extracting(droppingFirst: payload.lowerBound).extracting(
        first: header.length)
      require(header.bytes == stored.copy, "a header changes")
      var cursor = CARCursor(header: header, payload: payload, limits: .streaming)
      while let (section, cid) = try cursor.next(in: car) {
        let body = car.extracting(section.bodyRange)
        if verifying, cid.verify(body) == .mismatch {
          throw CARError(.contentMismatch(cid), offset: section.start)
        }
        require(
          cid.bytes == car.extracting(section.cidRange).copy,
          "a CID changes")
        outcome.blocks.append(
          Block(cid: cid, bytes: body.copy))
      }
    } catch {
      outcome.error = error
    }
    return outcome
  }

  private static func readInChunks(_ car: Span<UInt8>, of length: Int, verifying: Bool)
    -> Outcome
  {
    let bytes = car.copy
    var place = 0
    var reader = CARReader<Never>(verifying: verifying) { () throws(Never) -> [UInt8]? in
      guard place < bytes.count else { return nil }
      defer { place = min(place + length, bytes.count) }
      return Array(bytes[place..<min(place + length, bytes.count)])
    }
    var outcome = Outcome()
    do {
      while let block = try reader.next() { outcome.blocks.append(block) }
    } catch {
      guard case .car(let reason) = error else { fatalError("an error from nowhere") }
      outcome.error = reason
    }
    return outcome
  }

  private static func inspect(_ car: Span<UInt8>, verifying: Bool, _ whole: Outcome) {
    do throws(CARError) {
      var records = 0
      let inspection = try RepositoryInspector.inspect(
        car, verifying: verifying,
        visit: { record in
          records += 1
          if let body = record.body {
            require(body.upperBound <= car.count, "a record outside of the CAR")
          }
        })
      require(records == inspection.recordCount, "records are counted wrongly")
      require(
        inspection.sectionCount >= whole.blocks.count, "the inspector sees fewer blocks")
      if whole.error == nil {
        require(inspection.sectionCount == whole.blocks.count, "the inspector sees more blocks")
        require(inspection.carError == nil, "the inspector finds an error of its own")
        require(inspection.mismatchedBlocks.isEmpty || !verifying, "blocks that hash wrongly")
      }
    } catch {
      require(whole.blocks.isEmpty && whole.error != nil, "the inspector refuses a CAR: \(error)")
    }
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    guard let corpus else { return [CARHeader(roots: []).bytes + [0]] }
    return try corpus.files(".car", limit: 32 << 10).enumerated().map { number, car in
      car + [UInt8(truncatingIfNeeded: number * 37)]
    }
  }
}
