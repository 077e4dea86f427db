internal import IPLD

/// A large section of several frames while a scan passes over them.
///
/// Invariants, which make it safe to hand from thread to thread:
///
/// 1. While frames are being examined, exactly one task has it, and hashes its frames in file
///    order.
/// 2. The scan itself touches it only before that task begins and after it has ended.
final class LargeSectionScan: @unchecked Sendable {
  let prefix: SectionPrefix
  /// How many of its frames have been met.
  var framesMet: UInt64 = 0
  /// The numbers of its frames that do not hold.
  var broken: Set<UInt64> = []
  private var hash: BodyHash

  init(_ prefix: SectionPrefix) {
    self.prefix = prefix
    hash = BodyHash(prefix.cid)
  }

  var isComplete: Bool { framesMet == prefix.frameCount }

  /// Hashes what frame number `number` holds of the body.
  func update(with frame: DataFrame, number: UInt64, decoder: FrameDecoder, in file: Span<UInt8>) {
    let skipped = number == 0 ? prefix.length : 0
    do throws(ArchiveError) {
      guard !frame.isRaw else {
        return frame.forEachBlock(droppingFirst: skipped, in: file) {
          hash.update(file.extracting($0))
        }
      }
      let content = try decoder.content(of: frame, in: file)
      hash.update(content.span.extracting(droppingFirst: skipped))
    } catch {
      broken.insert(number)
    }
  }

  /// Its CID, if that can be relied on.
  var cid: CID? { broken.contains(0) ? nil : prefix.cid }

  /// The result of the section.
  func finish() -> (cid: CID?, verification: Multihash.Verification) {
    let verification = hash.finish()
    return (cid, !broken.isEmpty || !isComplete ? .mismatch : verification)
  }
}
