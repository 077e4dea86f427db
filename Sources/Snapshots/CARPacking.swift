internal import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Repository

/// Takes the blocks of a CAR into an archive, those that it does not have yet, and writes down
/// their order.
///
/// They were hashed when the CAR was inspected and are not hashed again, so before anything is
/// committed the file has to prove to be the one that was inspected.
package struct CARPacking {
  private let car: MappedFile
  private let inspection: RepositoryInspection
  private let lookahead: CARLookahead
  private let observer: Progress.Observer

  /// A packing of a CAR that was found good.
  package init(_ repository: CheckedRepository, _ observer: @escaping Progress.Observer) {
    car = repository.car
    inspection = repository.inspection
    lookahead = repository.lookahead
    self.observer = observer
  }

  /// The header, with its length in front.
  package var header: [UInt8] {
    let start = inspection.payload.lowerBound
    return car.withBytes { $0.array(start..<start + inspection.header.length) }
  }

  /// Appends the blocks that are new, in the order of the CAR, and the order if it is too long for
  /// a manifest.
  ///
  /// - Parameters:
  ///   - writer: the archive.
  ///   - base: the snapshot before this one of the same account, to which the order may be
  ///     relative.
  /// - Returns: What the manifest says of the CAR.
  package func pack(
    into writer: inout ArchiveWriter, after base: ArchivedSnapshot?
  ) throws -> Snapshot.CARDescription {
    let order = try appendBlocks(to: &writer)
    let written = try order.written(after: base.flatMap { (base) throws in try OrderBasis(base) })
    for page in written.pages { try writer.append(page.cid, page.bytes.span) }
    return Snapshot.CARDescription(
      header: header, byteCount: UInt64(inspection.payload.count),
      sha256: lookahead.sha256,
      sectionCount: UInt64(inspection.sectionCount), order: written.order, base: written.base)
  }

  private func appendBlocks(to writer: inout ArchiveWriter) throws -> BlockOrder {
    let known = try lookahead.ordinals.get()
    let payload = inspection.payload
    var order = BlockOrder()
    var cursor = CARCursor(header: inspection.header, payload: payload)
    var reported = payload.lowerBound
    var number = 0
    try car.withBytes { bytes throws in
      while let (section, cid) = try cursor.next(in: bytes) {
        if number < known.count, known[number] != .max {
          if cid.multihash.sha256 == nil {
            try checkUnverifiable(cid, bytes.extracting(section.bodyRange), writer.reader)
          }
          order.append(known[number])
        } else {
          order.append(try writer.append(verified: cid, bytes.extracting(section.bodyRange)))
        }
        number += 1
        if section.end - reported >= 1 << 20 {
          reported = section.end
          observer(
            Progress(stage: "packing", done: UInt64(reported), total: UInt64(payload.count)))
        }
      }
    }
    return order
  }

  /// Under a hash function that is unknown here the same CID may name other bytes, and then one
  /// file cannot hold both.
  private func checkUnverifiable(_ cid: CID, _ body: Span<UInt8>, _ reader: ArchiveReader?) throws {
    guard cid.verify(body) == .cannotVerify else { return }
    guard let stored = try reader?.body(of: cid), stored.span.equals(body) else {
      throw BackupError.malformedRepository(
        "the archive holds other bytes under \(cid), whose hash function is unknown here")
    }
  }
}
