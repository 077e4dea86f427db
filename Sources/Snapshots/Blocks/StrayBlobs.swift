internal import Archive
package import IPLD

extension ArchivedSnapshot {
  /// The blobs whose records are lost: everything that lies in the archive as a blob does, and is
  /// neither known as one nor a document or page of a snapshot.
  ///
  /// Where there are several accounts, nothing tells whose they are, so there are none.
  ///
  /// - Parameters:
  ///   - history: the snapshots of the archive.
  ///   - isKnown: whether a record that is left refers to a blob.
  /// - Throws: ``SnapshotError`` and `ArchiveError` for a manifest that cannot be read.
  package func strays(_ history: SnapshotHistory, besides isKnown: (CID) -> Bool) throws -> [CID] {
    guard history.newestOfAccounts.count <= 1 else { return [] }
    var known = Self.documents(of: snapshot)
    for entry in history.entries {
      known.formUnion(Self.documents(of: try ArchivedSnapshot(entry.cid, in: reader).snapshot))
    }
    // Those on pages that cannot be read are found here.
    known.formUnion(try unlessDamaged(extras) ?? [])
    var strays: [CID] = []
    for ordinal in reader.ordinals {
      let cid: CID
      do {
        cid = try reader.section(at: ordinal).cid
      } catch is ArchiveError {
        // Lost with its frame; its record was reported.
        continue
      }
      guard cid.codec == .raw, !isKnown(cid), known.insert(cid).inserted else { continue }
      strays.append(cid)
    }
    return strays
  }

  /// The blocks that look like blobs and are a snapshot's bookkeeping.
  private static func documents(of snapshot: Snapshot) -> Set<CID> {
    var documents = Set([snapshot.didDocument, snapshot.plcLog].compactMap { $0 })
    if case .pages(let pages) = snapshot.car.order { documents.formUnion(pages) }
    return documents
  }
}
