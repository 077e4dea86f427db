internal import IPLD

/// Which manifests no block links to.
///
/// A record may look like a manifest. But a tree node links to every record, and nothing links to a
/// manifest except manifests, in `prev` and `car.order.base`. So what is linked to otherwise is not
/// a manifest.
extension Survey {
  /// What may be manifests and is linked to by no block that was surveyed, nor by one in a frame of
  /// `index`.
  func unlinkedManifests(
    _ index: ArchiveIndex, withSalvaged: Bool = false, in file: Span<UInt8>
  ) -> [Manifest] {
    let found = withSalvaged ? allManifests : manifests
    if found.isEmpty { return found }
    var unlinked = Set(found.compactMap(\.shape.cid.multihash.sha256))
    let decoder = FrameDecoder()
    for range in searched(index.frames(in: file)) {
      Self.search(range, decoder, in: file, &unlinked)
    }
    return found.filter { $0.shape.cid.multihash.sha256.map(unlinked.contains) ?? false }
  }

  /// Where sections begin: in frames that were surveyed, and in those of an index before them.
  private func searched(_ entries: [FrameEntry]) -> [Range<UInt64>] {
    let own = frames.filter { $0.holdsSections }.map { $0.offset..<$0.end }
    return entries.filter { $0.offset < UInt64(start) }.map { $0.offset..<$0.end } + own
  }

  /// Takes from some digests those that the sections of a data frame link to; of one that does not
  /// hold or continues a section, nothing is found.
  private static func search(
    _ range: Range<UInt64>, _ decoder: FrameDecoder, in file: Span<UInt8>,
    _ unlinked: inout Set<SHA256Digest>
  ) {
    guard !unlinked.isEmpty, range.upperBound <= UInt64(file.count) else { return }
    do throws(ArchiveError) {
      let frame = try DataFrame(
        file, at: Int(range.lowerBound), limit: Int(range.upperBound))
      let decoded = try decoder.sections(of: frame, in: file)
      if let prefix = decoded.large?.prefix {
        // Media is passed over by its prefix.
        guard prefix.cid.codec == .dagCBOR, frame.contentSize == prefix.contentSize(ofFrame: 0)
        else { return }
        let content = try decoder.content(of: frame, in: file)
        return search(
          prefix.cid, content.span.extracting(droppingFirst: prefix.length), &unlinked)
      }
      let content = decoded.bytes
      for index in 0..<decoded.count {
        let (cid, body) = try decoded.section(index)
        if cid.codec == .dagCBOR { search(cid, content.span.extracting(body), &unlinked) }
      }
    } catch {
      // What cannot be read links to nothing.
    }
  }

  private static func search(
    _ cid: CID, _ body: Span<UInt8>, _ unlinked: inout Set<SHA256Digest>
  ) {
    if let manifest = ManifestShape(cid, body) {
      if let commit = manifest.commit.multihash.sha256 { unlinked.remove(commit) }
      return
    }
    // A link in DAG-CBOR: a byte string of 37 bytes, 0, and a CID of version 1 with DAG-CBOR and
    // SHA-256.
    let beginning: UInt64 = 0x0020_1271_0100_2558
    var place = 0
    while place <= body.count - 39 {
      if body.u64(place) & 0x00ff_ffff_ffff_ffff == beginning {
        unlinked.remove(SHA256Digest(body.extracting(place + 7..<place + 39)))
      }
      place += 1
    }
  }
}
