internal import Archive
internal import IPLD

/// The end of every backup: what a snapshot leads to, its manifest, and the footer that makes it count.
extension ArchiveWriter {
  /// Appends what a manifest names beside the repository and the blobs.
  ///
  /// - Parameters:
  ///   - documents: documents about the account, as they were received.
  ///   - pages: the pages of its lists.
  /// - Throws: as `append` does.
  mutating func append(documents: [[UInt8]?], pages: [Block]) throws {
    for document in documents {
      guard let document, let cid = Self.cid(document: document) else { continue }
      try append(cid, document.span)
    }
    for page in pages { try append(page.cid, page.bytes.span) }
  }

  /// Appends the manifest, and makes everything count.
  ///
  /// - Throws: as ``commit(manifest:)`` does.
  mutating func commit(_ snapshot: Snapshot) throws -> Generation {
    let bytes = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    try append(cid, bytes.span)
    if snapshot.car.sha256 == nil { require(FeatureFlags.undigested) }
    return try commit(manifest: cid)
  }

  /// Ends a write that had no new snapshot to add: damaged sections that were written again count,
  /// and without any the file is left as it was.
  ///
  /// - Throws: as ``commit(manifest:)`` does.
  /// - Returns: What is committed; nil if nothing is.
  mutating func endWithoutSnapshot() throws -> Generation? {
    if isHealing { return try commit(manifest: nil) }
    let generation = generation
    try abandon()
    return generation
  }

  /// The CID under which a document is kept.
  static func cid(document: [UInt8]?) -> CID? {
    document.map { CID(codec: .raw, hashing: $0.span) }
  }
}
