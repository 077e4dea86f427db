internal import Archive
internal import IPLD

/// The end of every backup: what a snapshot leads to, its manifest, and the footer that makes it count.
extension ArchiveWriter {
  /// Appends what the manifest names beside the repository and the blobs, then the manifest, and makes it count.
  ///
  /// - Parameters:
  ///   - snapshot: the manifest.
  ///   - documents: documents about the account, as they were received.
  ///   - pages: the pages of its lists.
  /// - Throws: as ``commit(manifest:)`` does.
  mutating func commit(_ snapshot: Snapshot, documents: [[UInt8]?], pages: [Block]) throws
    -> Generation
  {
    for document in documents {
      guard let document, let cid = Self.cid(document: document) else { continue }
      try append(cid, document.span)
    }
    for page in pages { try append(page.cid, page.bytes.span) }
    let bytes = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    try append(cid, bytes.span)
    return try commit(manifest: cid)
  }

  /// The CID under which a document is kept.
  static func cid(document: [UInt8]?) -> CID? {
    document.map { CID(codec: .raw, hashing: $0.span) }
  }
}
