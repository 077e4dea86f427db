package import IPLD

/// Manifests that no footer leads to.
extension ArchiveReader {
  /// A section that may be a manifest: it has a frame for itself, the shape of one, and no block
  /// links to it.
  ///
  /// Its CID; its number, which tells where it stands among others; and where its frame begins.
  package typealias ManifestCandidate = (cid: CID, ordinal: UInt64, offset: UInt64)

  /// What may be manifests, in file order: those that follow the last footer, or, in a reader that
  /// a survey made, all.
  ///
  /// A copy of one that the index knows elsewhere is none.
  ///
  /// - Throws: ``ArchiveError`` if one of them cannot be looked up.
  package var manifestCandidates: [ManifestCandidate] {
    get throws {
      guard let survey = survey ?? tail else { return [] }
      let found = file.withBytes { bytes in
        survey.unlinkedManifests(index, withSalvaged: true, in: bytes)
      }
      return try found.compactMap { manifest in
        let offset = survey.frames[manifest.frame].offset
        guard let location = try locate(manifest.shape.cid), location.row.entry.offset == offset
        else { return nil }
        return (manifest.shape.cid, location.ordinal, offset)
      }
    }
  }

  /// The newest manifests by the footers that hold and do not stand where they were written, the
  /// newest first, and where these footers lie.
  package var movedHeads: [(cid: CID, offset: UInt64)] { tail.map(movedHeads) ?? [] }

  /// The manifests that footers of later generations name, wherever these lie now, in a reader that
  /// a survey made.
  package var laterHeads: Set<CID> { Set((survey.map(movedHeads) ?? []).map(\.cid)) }

  /// Whether a footer may have stood behind the last that holds.
  package var mayHaveLostFooter: Bool {
    !laterHeads.isEmpty
      || file.withBytes { bytes in
        !Footer.remains(
          in: bytes, from: Int(clamping: generation.committedLength), after: generation
        ).isEmpty
      }
  }

  private func movedHeads(_ survey: Survey) -> [(cid: CID, offset: UInt64)] {
    // A copy of an older part of the file says nothing new.
    let moved = survey.footers.filter { !$0.isInPlace && $0.number > generation.number }
    return moved.sorted { $0.number > $1.number }.compactMap { footer in
      footer.head.map { ($0, UInt64(footer.frame.offset)) }
    }
  }
}
