import ATProtocol
import Archive
import IPLD
internal import Repository
import Snapshots
import TestSupport
import Testing

extension ArchiveReader {
  /// The CIDs of all sections.
  func contents() throws -> Set<CID> {
    var cids: Set<CID> = []
    try forEachSection { section in
      let (isNew, _) = cids.insert(section.cid)
      #expect(isNew, "\(section.cid) is there twice")
      return false
    } chunk: { _ in
    }
    return cids
  }

  /// What snapshots need, found out from their CARs and their manifests alone.
  ///
  /// - Parameters:
  ///   - cars: the CARs.
  ///   - held: the blobs and extras that are available.
  func needs(_ cars: [[UInt8]], held: Set<CID>) throws -> Set<CID> {
    var cids: Set<CID> = []
    for car in cars {
      let inspection = try RepositoryInspection(car: car)
      var cursor = CARCursor(header: inspection.header, payload: inspection.payload)
      while let (_, cid) = try cursor.next(in: car.span) { cids.insert(cid) }
      cids.formUnion(inspection.blobs.entries.map(\.cid).filter(held.contains))
    }
    for entry in try SnapshotHistory(of: self).entries {
      let archived = try ArchivedSnapshot(entry.cid, in: self)
      let snapshot = archived.snapshot
      cids.insert(entry.cid)
      cids.formUnion([snapshot.didDocument, snapshot.plcLog].compactMap(\.self))
      cids.formUnion(snapshot.extrasPages + snapshot.missingPages)
      cids.formUnion(try archived.extras())
      cids.formUnion(snapshot.car.pages)
    }
    return cids
  }

  /// Whether each manifest has a frame of its own (FORMAT 3.2).
  func hasManifestsAlone() throws -> Bool {
    let manifests = try SnapshotHistory(of: self).entries.map { try ordinal(of: $0.cid) }
    return try withFile { (file) throws in
      let index = try ArchiveIndex(generation, in: file)
      for ordinal in manifests.compactMap(\.self) {
        guard index.row(of: ordinal, in: file)?.entry.firstOrdinal == ordinal else { return false }
        guard let next = index.row(of: ordinal + 1, in: file) else { continue }
        guard next.entry.firstOrdinal == ordinal + 1 else { return false }
      }
      return true
    }
  }

  /// The CARs of all snapshots, the oldest first, each of which has to be exact.
  func cars() throws -> [[UInt8]] {
    try SnapshotHistory(of: self).entries.map { entry in
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: self))
      #expect(restored.isExact)
      return restored.withBytes { $0.array }
    }
  }
}

/// Whether those accept a file that know nothing of this project's code: `zstd -t`, and the reader
/// that was written from the document, where there is a Python to run it with.
func isAccepted(_ path: String) throws -> Bool {
  guard try ZstdProgram.accepts(path) else { return false }
  return try !IndependentReader.isPresent || IndependentReader.run(["verify", path]).status == 0
}

/// A CAR with the same header, and the same sections in another order.
func shuffled(_ car: [UInt8], using random: inout SeededGenerator) throws -> [UInt8] {
  let header = try CARHeader(car.span)
  var cursor = CARCursor(header: header, payload: 0..<car.count)
  var sections: [ArraySlice<UInt8>] = []
  var start = header.length
  while let (section, _) = try cursor.next(in: car.span) {
    sections.append(car[start..<section.end])
    start = section.end
  }
  return Array(car[..<header.length]) + sections.shuffled(using: &random).flatMap(\.self)
}
