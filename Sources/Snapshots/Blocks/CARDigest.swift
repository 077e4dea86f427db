package import Archive
package import Files
internal import IPLD

/// The length and the digest of a snapshot's CAR, which comes piece by piece, or as the archive is
/// read from end to end.
package final class CARDigest {
  private let car: Snapshot.CARDescription
  private var hash = SHA256()
  /// How many bytes have been added.
  package private(set) var count: UInt64 = 0
  /// The sections that are still to come, where the archive is followed.
  private var runs: ArraySlice<Range<UInt64>>
  /// Whether a part of it could not be read.
  private var isBroken = false

  /// A digest of a CAR, from its header on.
  ///
  /// - Parameter runs: its sections, if they lie in the archive in this order.
  /// - Throws: as ``take(_:)`` does.
  package init(of car: Snapshot.CARDescription, following runs: [Range<UInt64>] = []) throws {
    (self.car, self.runs) = (car, runs[...])
    try take(car.header.span)
  }

  /// Adds the next bytes.
  ///
  /// - Throws: ``SnapshotError`` if they are too many: whatever the order says, it is not more than
  ///   the manifest says.
  package func take(_ bytes: Span<UInt8>) throws(SnapshotError) {
    if car.sha256 != nil { hash.update(bytes) }
    count += UInt64(bytes.count)
    guard count <= car.byteCount else { throw .malformedOrder }
  }

  /// Takes what is part of the CAR of the sections that have the ordinals from `first` on.
  package func take(_ sections: FrameSections, from first: UInt64) {
    let here = first..<first + UInt64(sections.cids.count)
    while !isBroken, let run = runs.first, run.lowerBound < here.upperBound {
      let shared = run.clamped(to: here)
      if !shared.isEmpty {
        let places = Int(shared.lowerBound - first)..<Int(shared.upperBound - first)
        do {
          guard let range = sections.range(places) else { throw SnapshotError.malformedOrder }
          let content = sections.content
          try take(content.span.extracting(range))
        } catch {
          isBroken = true
        }
      }
      guard run.upperBound <= here.upperBound else { return }
      runs.removeFirst()
    }
  }

  /// Whether it was the CAR that the manifest describes; nil if not all of it has been seen.
  ///
  /// Read it only once: reading it finishes the hash.
  package var isExact: Bool? {
    guard !isBroken, runs.isEmpty else { return nil }
    return count == car.byteCount && car.sha256.map { $0 == hash.finish() } ?? true
  }

  /// Makes sure that it was the CAR that the manifest describes.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)``.
  package func checkExact() throws(BackupError) {
    guard isExact == true else { throw .carNotExact("its SHA-256 is not the one in the manifest") }
  }
}
