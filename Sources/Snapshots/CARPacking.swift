internal import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Repository

extension CheckedRepository {
  /// Appends the blocks that an archive does not have, in the order of the CAR, and the order if it
  /// is too long for a manifest.
  ///
  /// They were hashed when the CAR was inspected and are not hashed again, so before anything is
  /// committed the file has to prove to be the one that was inspected.
  ///
  /// - Parameters:
  ///   - writer: the archive.
  ///   - base: the snapshot before this one of the same account, to which the order may be
  ///     relative.
  ///   - observer: is told how far it is.
  /// - Returns: What the manifest says of the CAR.
  package func pack(
    into writer: inout ArchiveWriter, after base: ArchivedSnapshot?,
    _ observer: Progress.Observer = { _ in }
  ) throws -> Snapshot.CARDescription {
    let order = try appendBlocks(to: &writer, observer)
    let written = try order.written(after: base.flatMap { (base) throws in try OrderBasis(base) })
    for page in written.pages { try writer.append(page.cid, page.bytes.span) }
    return Snapshot.CARDescription(
      header: header, byteCount: byteCount, sha256: sha256, sectionCount: order.count,
      order: written.order, base: written.base)
  }

  private func appendBlocks(
    to writer: inout ArchiveWriter, _ observer: Progress.Observer
  ) throws -> BlockOrder {
    let known = try ordinals.get()
    var order = BlockOrder()
    var reported = 0
    for index in 0..<newCount {
      guard let file else { break }
      try file.withSection(at: start(index)) { bytes, section throws in
        let cid = CARSection.cid(at: section.start, in: bytes)
        let body = bytes.extracting(section.bodyRange)
        if index < known.count, known[index] != .max {
          if cid.multihash.sha256 == nil { try checkUnverifiable(cid, body, writer.reader) }
          order.append(known[index])
        } else {
          order.append(try writer.append(verified: cid, body))
        }
        guard section.end - reported >= 1 << 20 else { return }
        reported = section.end
        observer(Progress(stage: "packing", done: UInt64(reported), total: byteCount))
      }
    }
    for run in stored { order.append(run) }
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
