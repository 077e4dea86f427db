package import Archive
package import Files
internal import IPLD

/// The length and the digest of a snapshot's CAR, which comes piece by piece.
package struct CARDigest: ~Copyable {
  private let car: Snapshot.CARDescription
  private var hash = SHA256()
  /// How many bytes have been added.
  package private(set) var count: UInt64 = 0

  /// A digest of a CAR, from its header on.
  ///
  /// - Throws: as ``take(_:)`` does.
  package init(of car: Snapshot.CARDescription) throws {
    self.car = car
    try take(car.header.span)
  }

  /// Adds the next bytes.
  ///
  /// - Throws: ``SnapshotError`` if they are too many: whatever the order says, it is not more than
  ///   the manifest says.
  package mutating func take(_ bytes: Span<UInt8>) throws(SnapshotError) {
    if car.sha256 != nil { hash.update(bytes) }
    count += UInt64(bytes.count)
    guard count <= car.byteCount else { throw .malformedOrder }
  }

  /// Makes sure that it was the CAR that the manifest describes.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)``.
  package consuming func finish() throws(BackupError) {
    let (count, car) = (count, car)
    guard count == car.byteCount else {
      throw .carNotExact("it has \(count) bytes, and by the manifest \(car.byteCount)")
    }
    guard let digest = car.sha256 else { return }
    guard digest == hash.finish() else {
      throw .carNotExact("its SHA-256 is not the one in the manifest")
    }
  }
}

/// The digest of a CAR whose sections lie in the archive in their order, taken as the archive is
/// read from end to end.
package final class FollowedCAR {
  /// Nil if a part of it could not be read.
  private var digest: CARDigest?
  /// The sections that are still to come.
  private var runs: ArraySlice<Range<UInt64>>

  /// A CAR with these sections, which ascend.
  ///
  /// - Throws: ``SnapshotError`` if even its header is too long.
  package init(_ car: Snapshot.CARDescription, runs: [Range<UInt64>]) throws {
    digest = try CARDigest(of: car)
    self.runs = runs[...]
  }

  /// Takes what is part of the CAR of the sections that have the ordinals from `first` on.
  package func take(_ sections: FrameSections, from first: UInt64) {
    let here = first..<first + UInt64(sections.cids.count)
    while digest != nil, let run = runs.first, run.lowerBound < here.upperBound {
      let shared = run.clamped(to: here)
      if !shared.isEmpty {
        let places = Int(shared.lowerBound - first)..<Int(shared.upperBound - first)
        do {
          guard let range = sections.range(places) else { throw SnapshotError.malformedOrder }
          let content = sections.content
          try digest?.take(content.span.extracting(range))
        } catch {
          digest = nil
        }
      }
      guard run.upperBound <= here.upperBound else { return }
      runs.removeFirst()
    }
  }

  /// Whether it was the CAR that the manifest describes; nil if not all of it has been seen.
  package func finish() -> Result<Void, BackupError>? {
    guard runs.isEmpty, let digest = digest.take() else { return nil }
    do throws(BackupError) {
      return .success(try digest.finish())
    } catch {
      return .failure(error)
    }
  }
}
