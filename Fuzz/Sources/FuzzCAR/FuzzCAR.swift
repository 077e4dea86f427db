import ATProtocol
import Archive
import FuzzSupport
import IPLD
internal import Repository

/// CARs: one is read whatever it says, and so is a repository in it.
///
/// The last byte of the input is not part of it.
enum FuzzCAR: Fuzzer {
  /// What reading came to.
  private struct Outcome: Equatable {
    var blocks: [Block] = []
    var error: CARError?
  }

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    let car = bytes.extracting(droppingLast: 1)
    for verifying in [true, false] {
      let whole = readWhole(car, verifying: verifying)
      inspect(car, verifying: verifying, whole)
    }
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

  private static func inspect(_ car: Span<UInt8>, verifying: Bool, _ whole: Outcome) {
    do throws(CARError) {
      var records = 0
      let file = try CARFile(MappedFile(copying: car.array), verifying: verifying)
      let inspection = RepositoryInspection(of: file) { record in
        records += 1
        if let number = record.number {
          file.withBody(number) {
            require($0.count <= car.count, "a record outside of the CAR")
          }
        }
      }
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
