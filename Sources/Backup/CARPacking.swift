internal import ATProtocol
internal import Archive
internal import IPLD

/// Takes the blocks of a CAR into an archive, those that it does not have yet, and writes down their order.
struct CARPacking {
  private let car: MappedFile
  private let inspection: RepositoryInspection
  private let observer: Progress.Observer

  /// A packing of a CAR that was inspected and found good.
  init(
    _ car: MappedFile, _ inspection: RepositoryInspection, _ observer: @escaping Progress.Observer
  ) {
    self.car = car
    self.inspection = inspection
    self.observer = observer
  }

  /// The header, with its length in front.
  var header: [UInt8] {
    let start = inspection.payload.lowerBound
    return car.withBytes { $0.array(start..<start + inspection.header.length) }
  }

  /// Appends the blocks that are new, in the order of the CAR, and the order if it is too long for a manifest.
  ///
  /// - Parameters:
  ///   - writer: the archive.
  ///   - base: the snapshot before this one of the same account, to which the order may be relative.
  /// - Returns: What the manifest says of the CAR.
  func pack(
    into writer: inout ArchiveWriter, after base: ArchivedSnapshot?, sha256: SHA256Digest
  ) throws -> Snapshot.CARDescription {
    let order = try appendBlocks(to: &writer)
    let written = try order.written(after: base.flatMap { (base) throws in try OrderBasis(base) })
    for page in written.pages { try writer.append(page.cid, page.bytes.span) }
    return Snapshot.CARDescription(
      header: header, byteCount: UInt64(inspection.payload.count), sha256: sha256,
      sectionCount: UInt64(inspection.sectionCount), order: written.order, base: written.base)
  }

  private func appendBlocks(to writer: inout ArchiveWriter) throws -> BlockOrder {
    let known = try knownOrdinals(writer.reader)
    let blocks = inspection.blocks
    let payload = inspection.payload
    var order = BlockOrder()
    var cursor = CARCursor(header: inspection.header, payload: payload)
    var reported = payload.lowerBound
    var next = 0
    try car.withBytes { bytes throws in
      while let (section, cid) = try cursor.next(in: bytes) {
        // Blocks are numbered as they come first; one that comes again has to be looked up.
        let index: Int
        if next < blocks.count, blocks.body(next) == section.bodyRange {
          index = next
          next += 1
        } else {
          index = blocks.index(of: cid, in: bytes) ?? next
        }
        if !known.isEmpty, let ordinal = known[index] {
          if cid.multihash.sha256 == nil {
            try checkUnverifiable(cid, bytes.extracting(section.bodyRange), writer.reader)
          }
          order.append(ordinal)
        } else {
          order.append(try writer.append(cid, bytes.extracting(section.bodyRange)))
        }
        if section.end - reported >= 1 << 20 {
          reported = section.end
          observer(
            Progress(stage: "packing", done: UInt64(reported), total: UInt64(payload.count)))
        }
      }
    }
    return order
  }

  /// The ordinal of each distinct block that the archive has.
  private func knownOrdinals(_ reader: ArchiveReader?) throws -> [UInt64?] {
    guard let reader else { return [] }
    let (car, blocks) = (car, inspection.blocks)
    return try reader.matches(blocks.count) { index in
      car.withBytes { bytes in blocks.cid(index, in: bytes) }
    }.map { $0?.ordinal }
  }

  /// Under a hash function that is unknown here the same CID may name other bytes, and then one file cannot hold both.
  private func checkUnverifiable(_ cid: CID, _ body: Span<UInt8>, _ reader: ArchiveReader?) throws {
    guard cid.verify(body) == .cannotVerify else { return }
    guard let stored = try reader?.body(of: cid), stored.span.equals(body) else {
      throw BackupError.malformedRepository(
        "the archive holds other bytes under \(cid), whose hash function is unknown here")
    }
  }
}
