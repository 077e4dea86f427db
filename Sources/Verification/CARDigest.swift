internal import Archive
internal import IPLD
internal import Snapshots

/// The length and the digest of a CAR that comes piece by piece.
final class CARDigest {
  private var hash = SHA256()
  private let limit: UInt64
  /// How many bytes there have been.
  private(set) var count: UInt64 = 0

  /// Of a CAR that is not to be longer than this.
  init(limit: UInt64) { self.limit = limit }

  /// Takes the next bytes.
  ///
  /// - Throws: ``SnapshotError`` if they are too many: whatever the order says, it is not more than
  ///   the manifest says.
  func take(_ bytes: Span<UInt8>) throws(SnapshotError) {
    hash.update(bytes)
    count += UInt64(bytes.count)
    guard count <= limit else { throw .malformedOrder }
  }

  /// Whether it was the CAR that a manifest describes; to be asked once.
  func matches(_ car: Snapshot.CARDescription) -> Bool {
    let digest = hash.finish()
    return count == car.byteCount && car.sha256.map { $0 == digest } ?? true
  }
}

/// The digest of a CAR whose sections lie in the archive in their order, while the archive is read
/// from end to end.
struct CARFollower {
  /// The manifest.
  let manifest: CID
  private let car: Snapshot.CARDescription
  private let digest: CARDigest
  private var runs: ArraySlice<Range<UInt64>>
  /// Whether a part of it could not be had.
  private var isBroken = false

  /// A follower of a snapshot's CAR; nil if its sections stand in another order.
  init?(_ archived: ArchivedSnapshot) throws {
    guard let manifest = archived.cid else { return nil }
    let car = archived.snapshot.car
    let runs = try archived.order().runs
    guard zip(runs, runs.dropFirst()).allSatisfy({ $0.upperBound <= $1.lowerBound }) else {
      return nil
    }
    (self.manifest, self.car, self.runs) = (manifest, car, runs[...])
    digest = CARDigest(limit: car.byteCount)
    try digest.take(car.header.span)
  }

  /// Takes what is part of the CAR of the sections that have the ordinals from `first` on.
  mutating func take(_ sections: FrameIntake.Sections, from first: UInt64) {
    let here = first..<first + UInt64(sections.cids.count)
    while !isBroken, let run = runs.first, run.lowerBound < here.upperBound {
      let shared = run.clamped(to: here)
      if !shared.isEmpty {
        let places = Int(shared.lowerBound - first)..<Int(shared.upperBound - first)
        guard let range = sections.range(places) else {
          isBroken = true
          return
        }
        let content = sections.content
        do {
          try digest.take(content.span.extracting(range))
        } catch {
          isBroken = true
        }
      }
      guard run.upperBound <= here.upperBound else { return }
      runs.removeFirst()
    }
  }

  /// Whether it was the CAR that the manifest describes; nil if not all of it has been seen.
  var isExact: Bool? { isBroken || !runs.isEmpty ? nil : digest.matches(car) }
}
