package import Archive
internal import Files
package import IPLD

extension BlockOrder {
  /// Describes a CAR whose sections come in this order, and appends the order to an archive if it
  /// is too long for a manifest.
  ///
  /// - Parameters:
  ///   - header: the CAR's header.
  ///   - byteCount: how many bytes it has.
  ///   - sha256: its digest; nil if it was never put together.
  ///   - base: an earlier snapshot of the account, to whose order this one may be relative.
  ///   - writer: the archive.
  /// - Throws: ``BackupError`` for an order that takes more than a reader reads; `ArchiveError` if
  ///   the archive cannot be read or written.
  package func describe(
    _ header: [UInt8], byteCount: UInt64, sha256: SHA256Digest?, after base: ArchivedSnapshot?,
    into writer: inout ArchiveWriter
  ) throws -> Snapshot.CARDescription {
    var car = Snapshot.CARDescription()
    (car.header, car.byteCount, car.sha256) = (header, byteCount, sha256)
    car.sectionCount = count
    let basis = try base.flatMap { base in try unlessDamaged(base.resolvedOrder) }
    try writer.append(write(to: &car, after: basis).pages)
    return car
  }

  /// Enters the order in a description: relative to that of `basis`, or as it is if that is shorter
  /// or many are relative already.
  ///
  /// - Throws: ``BackupError`` for an order that takes more than a reader reads.
  /// - Returns: the blocks that hold it, if it is too long for a manifest, and how many orders it
  ///   is relative to.
  func write(
    to car: inout Snapshot.CARDescription, after basis: ResolvedOrders.Resolved?
  ) throws -> (pages: [Block], depth: Int) {
    let maximumRuns = Self.maximumRuns(ofSections: runs.reduce(0) { max($0, $1.upperBound) })
    var encoded = encoded
    (car.base, car.first) = (nil, nil)
    if let basis, let manifest = basis.manifest, runs.count > 1 || basis.depth > 0,
      basis.depth < Self.maximumDepth
    {
      let (relative, first) = relative(to: basis.order)
      let bytes = relative.encoded
      if bytes.count + manifest.bytes.count + 16 < encoded.count {
        (encoded, car.base, car.first) = (bytes, manifest, first)
      }
    }
    guard runs.count <= maximumRuns, encoded.count <= Self.maximumLength(ofRuns: maximumRuns)
    else {
      throw BackupError.malformedRepository(
        "the CAR repeats its blocks too often, in too many orders")
    }
    let pages = encoded.count > Self.maximumInline ? Self.pages(encoded) : []
    (car.runs, car.pages) = (pages.isEmpty ? encoded : nil, pages.map(\.cid))
    return (pages, car.base == nil ? 0 : (basis?.depth ?? 0) + 1)
  }
}
