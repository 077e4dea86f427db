internal import IPLD

/// What is left of footers that do not hold.
///
/// A writer that was interrupted leaves no more than the beginning of one. Where there is more, a
/// footer was there, or reached the medium in part: both look the same, so it counts as damage.
extension Footer {
  /// Where footers seem to have been, after the last that holds.
  ///
  /// One is known by its first 28 bytes, or by its own offset, which stands before its checksum, so
  /// that no byte that is changed, nor a sector that is lost, hides it.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - start: Where to begin.
  ///   - generation: What the last footer that holds says; nil if there is none.
  /// - Returns: Where each begins, and whether it can only have been one of this file, that ended
  ///   the generation after the last that is committed.
  static func remains(in file: Span<UInt8>, from start: Int, after generation: Generation?)
    -> [(offset: Int, isNext: Bool)]
  {
    var found: [Int: Bool] = [:]
    var place = start
    while let magic = ArchiveMagic.next(in: file, from: place) {
      // An error here says only that no frame begins at this place.
      // A whole one of an earlier generation is a copy.
      if let frame = try? SkippableFrame(file, at: magic - 8), frame.kind == SkippableFrame.footer,
        !frame.holds(in: file) || file.u64(frame.offset + 48) > generation?.number ?? 0
      {
        found[frame.offset] = follows(generation, frame.offset, in: file)
      }
      place = magic + ArchiveMagic.length
    }
    for own in max(0, start)..<max(0, start, file.count - trailerLength + 1) {
      let (offset, end) = (file.u64(own), own + trailerLength)
      // Numbers that are small look like one another, so where the file continues after it more has
      // to be right.
      guard offset >= UInt64(max(0, start)), offset < UInt64(own),
        segmentCount(length: end - Int(offset)) != nil,
        end == file.count || follows(generation, Int(offset), in: file)
      else { continue }
      found[Int(offset)] = true
    }
    return found.map { ($0, $1) }.sorted { $0.offset < $1.offset }
  }

  /// Whether a footer says that it comes after this generation, as far as it can still be read.
  private static func follows(_ generation: Generation?, _ offset: Int, in file: Span<UInt8>)
    -> Bool
  {
    guard offset <= file.count - length(segments: 0) else { return false }
    return file.u64(offset + 48) == (generation?.number ?? 0) + 1
      || (generation != nil && file.u64(offset + 56) == generation?.footerOffset)
  }
}

extension Survey {
  /// Where footers seem to have been, behind the last that holds.
  ///
  /// A footer that holds and was moved is not what is left of one, and bytes in a torn frame are
  /// from an older write.
  func remainsOfFooters(after generation: Generation?, in file: Span<UInt8>)
    -> [(offset: Int, isNext: Bool)]
  {
    let (whole, gaps) = (Set(footers.map(\.frame.offset)), gaps)
    return Footer.remains(in: file, from: start, after: generation)
      .filter { !whole.contains($0.offset) && ($0.isNext || gaps.has($0.offset)) }
  }
}

/// What is left of a footer that says which manifest is the newest.
///
/// Forgetting and copying write several manifests into one generation, and only the footer says
/// which of them is the newest. So when it is rebuilt, what can still be read of it is asked first.
extension Footer {
  /// What the bytes at `offset` say of the newest manifest, as those of a footer; nil if the file
  /// ends before that.
  static func headClaim(in file: Span<UInt8>, at offset: Int) -> Generation.Head? {
    guard offset >= 0, offset <= file.count - segmentsOffset else { return nil }
    let digest = SHA256Digest(file.extracting(offset + 96..<offset + 128))
    return Generation.Head(
      cid: CID(codec: .dagCBOR, digest: digest), ordinal: file.u64(offset + 88),
      frameOffset: file.u64(offset + 80))
  }
}

extension Generation.Head {
  /// Whether a manifest is the one that a damaged footer means: two of three numbers are right, so
  /// that one may be damaged.
  func means(_ head: Generation.Head) -> Bool {
    [head.frameOffset == frameOffset, head.ordinal == ordinal, head.cid == cid].count { $0 } >= 2
  }
}
