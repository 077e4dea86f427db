internal import ATProtocol
internal import Archive
package import IPLD
package import Snapshots
package import SystemPackage
package import TestSupport

/// Writes an archive by hand: the blocks in order, one of them optionally corrupted, and a manifest
/// that `change` may falsify.
package func handMadeArchive(
  in folder: TemporaryFolder, _ repository: TestRepository, further: [Block] = [],
  spoilt: (cid: CID, bytes: [UInt8])? = nil, change: (inout Snapshot) -> Void = { _ in }
) throws -> FilePath {
  let car = try repository.car()
  let header = try CARHeader(car.span)
  let path = FilePath(folder.file("made.car.zst"))
  var writer = try ArchiveWriter.open(
    try FileStorage.create(path), carHeader: Array(car[..<header.length]))
  let blocks = try repository.blocks()
  var order = BlockOrder()
  for block in blocks where !repository.omitted.contains(block.cid) {
    let bytes = spoilt?.cid == block.cid ? spoilt?.bytes ?? [] : block.bytes
    order.append(try writer.append(verified: block.cid, bytes.span))
  }
  for block in further { try writer.append(block.cid, block.bytes.span) }
  var snapshot = try Snapshot.example()
  snapshot.did = try DID(repository.did)
  snapshot.handle = nil
  snapshot.rev = try repository.rev.map { text throws in try TID(text) }
  (snapshot.didDocument, snapshot.plcLog, snapshot.previous) = (nil, nil, nil)
  (snapshot.extrasPages, snapshot.missingPages) = ([], [])
  snapshot.commit = header.roots[0]
  snapshot.blobs = Snapshot.BlobCounts()
  snapshot.unreadable = UnreadableRecords()
  snapshot.counts.records = repository.records.count
  snapshot.describe(car, header: header.length, sectionCount: order.count, order: order.encoded)
  change(&snapshot)
  let bytes = try snapshot.encode()
  let cid = CID(codec: .dagCBOR, hashing: bytes.span)
  try writer.append(cid, bytes.span)
  _ = try writer.commit(manifest: cid)
  return path
}

extension Snapshot {
  /// Takes over what is to be said about a CAR.
  package mutating func describe(_ car: [UInt8], header: Int, sectionCount: UInt64, order: [UInt8])
  {
    self.car.header = Array(car[..<header])
    self.car.byteCount = UInt64(car.count)
    self.car.sha256 = SHA256.digest(of: car.span)
    self.car.sectionCount = sectionCount
    self.car.runs = order
  }
}
