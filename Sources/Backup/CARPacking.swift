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
    let (shortest, orderBase) = try shortest(order, after: base)
    let encoded = shortest.encoded
    guard encoded.count <= BlockOrder.maximumEncoded else {
      throw BackupError.malformedRepository(
        "the CAR repeats its blocks in an order that takes over \(BlockOrder.maximumEncoded) bytes to write down"
      )
    }
    let written: Snapshot.Order
    if encoded.count <= BlockOrder.maximumInline {
      written = .inline(encoded)
    } else {
      let pages = BlockOrder.pages(encoded)
      for page in pages { try writer.append(page.cid, page.bytes.span) }
      written = .pages(pages.map(\.cid))
    }
    return Snapshot.CARDescription(
      header: header, byteCount: UInt64(inspection.payload.count), sha256: sha256,
      sectionCount: UInt64(inspection.sectionCount), order: written, base: orderBase)
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

  /// The order relative to that of `base`, or as it is if that is shorter or many are relative already.
  private func shortest(_ order: BlockOrder, after base: ArchivedSnapshot?) throws -> (
    BlockOrder, Snapshot.OrderBase?
  ) {
    guard let base, let manifest = base.cid, order.runs.count > 1 || base.snapshot.car.base != nil,
      try base.orderDepth() < BlockOrder.maximumDepth
    else { return (order, nil) }
    let (relative, first) = order.relative(to: try base.order())
    let overhead = manifest.bytes.count + 16
    guard relative.encoded.count + overhead < order.encoded.count else { return (order, nil) }
    return (relative, Snapshot.OrderBase(manifest: manifest, first: first))
  }
}
