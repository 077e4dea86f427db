package import IPLD

/// Manifests that no footer leads to.
extension ArchiveReader {
  /// What may be manifests and no sound chain can have forgotten, in the order of their ordinals:
  /// those after the footer from which the chain leads on, and those that the index of the last
  /// footer does not know.
  ///
  /// Each has a frame for itself, the shape of a manifest, and no block that links to it. A copy of
  /// one that the index knows elsewhere is none.
  ///
  /// - Parameter footer: Where that footer ends; 0 if no chain is sound.
  /// - Throws: ``ArchiveError`` if one of them cannot be looked up.
  package func manifestCandidates(behind footer: UInt64) throws -> [Generation.Head] {
    guard let survey = survey ?? tail else { return [] }
    let found = file.withBytes(reading: [survey.start..<file.count]) { bytes in
      survey.unlinkedManifests(index, withSalvaged: true, in: bytes)
    }
    let candidates = try found.compactMap { manifest -> Generation.Head? in
      let offset = survey.frames[manifest.frame].offset
      guard let location = try locate(manifest.shape.cid), location.row.entry.offset == offset
      else { return nil }
      return Generation.Head(
        cid: manifest.shape.cid, ordinal: location.ordinal, frameOffset: offset)
    }
    return try candidates.filter { try $0.frameOffset >= footer || !isListed($0) }
      .sorted { $0.ordinal < $1.ordinal }
  }

  /// Whether the index of the last footer knows a section; of one that cannot be read, whether it
  /// had that ordinal.
  private func isListed(_ head: Generation.Head) throws -> Bool {
    try withFile { (bytes) throws in
      do throws(ArchiveError) {
        let committed = try ArchiveIndex(generation, in: bytes)
        return try !committed.candidates(head.cid.sectionKey, in: bytes).isEmpty
      } catch {
        return head.ordinal < generation.sectionCount
      }
    }
  }

  /// The newest manifests by the footers that hold and do not stand where they were written, the
  /// newest first, and where these footers lie.
  package var movedHeads: [(cid: CID, offset: UInt64)] {
    get throws { try tail.map(movedHeads) ?? [] }
  }

  /// The newest manifests by what is left of footers behind the last that holds, the newest first,
  /// and where these footers began.
  package var claimedHeads: [(cid: CID, offset: UInt64)] {
    guard let tail, tail.start > 0 else { return [] }
    let heads = tail.allManifests.compactMap { tail.head($0) }
    if heads.isEmpty { return [] }
    return file.withBytes(reading: [tail.start..<file.count]) { bytes in
      tail.remainsOfFooters(after: generation, in: bytes).filter(\.isNext).reversed()
        .compactMap { remains in
          let claim = Footer.headClaim(in: bytes, at: remains.offset)
          return claim.flatMap { claim in heads.first(where: claim.means) }
            .map { ($0.cid, UInt64(remains.offset)) }
        }
    }
  }

  /// The manifests that footers of later generations name, wherever these lie now, in a reader that
  /// a survey made.
  package var laterHeads: Set<CID> {
    get throws { Set(try (survey.map(movedHeads) ?? []).map(\.cid)) }
  }

  /// Whether a footer may have stood after the last that holds.
  package var mayHaveLostFooter: Bool {
    get throws {
      let behind = Int(clamping: generation.committedLength)..<file.count
      guard try laterHeads.isEmpty else { return true }
      let whole = Set((tail ?? survey)?.footers.map(\.frame.offset) ?? [])
      return file.withBytes(reading: [behind]) { bytes in
        Footer.remains(in: bytes, from: behind.lowerBound, after: generation)
          .contains { !whole.contains($0.offset) }
      }
    }
  }

  private func movedHeads(_ survey: Survey) throws -> [(cid: CID, offset: UInt64)] {
    let moved = try survey.movedFooters(after: generation, besides: knownManifests)
    if moved.isEmpty { return [] }
    // Those of a further archive say nothing of this one.
    let end = file.withBytes(reading: [0..<file.count]) { bytes in survey.firstEnd(in: bytes) }
    return moved.filter { $0.frame.offset < end }
      .sorted { $1.isOlder(than: $0) }
      .compactMap { footer in footer.head.map { ($0, UInt64(footer.frame.offset)) } }
  }

  /// The newest manifest, and those to which it leads.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  func knownManifests() throws -> Set<CID> {
    var known: Set<CID> = []
    var next = generation.head?.cid
    while let cid = next, known.insert(cid).inserted {
      do {
        let body = try body(of: cid, limit: ManifestShape.maximumLength)
        next = body.flatMap { ManifestShape(cid, $0.span) }?.previous
      } catch let error as ArchiveError where error.faultKind != .system {
        // The chain ends where a manifest is damaged.
        next = nil
      }
    }
    return known
  }
}
