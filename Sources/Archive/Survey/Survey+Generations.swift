internal import IPLD

/// Which manifest is the newest.
extension Survey {
  /// A manifest as the newest.
  func head(_ manifest: Manifest) -> Generation.Head? {
    let frame = frames[manifest.frame]
    guard frame.firstOrdinal != .max else { return nil }
    return Generation.Head(
      cid: manifest.shape.cid, ordinal: frame.firstOrdinal, frameOffset: frame.offset)
  }

  /// The newest manifest after what lies behind a footer, if it is made to count.
  ///
  /// A manifest that names the head there was as the one before it becomes the head, if no data
  /// follows it in its generation; so do several that lead from one to the other. A footer that
  /// holds but was moved says which manifest was the newest up to there.
  ///
  /// - Parameters:
  ///   - manifests: What may be manifests.
  ///   - generation: What the last footer before it says; nil if there is none.
  ///   - range: The numbers of the frames that lie there, with nothing between them; nil for all
  ///     that lies behind the footer.
  func head(
    of manifests: [Manifest], after generation: Generation?, in range: Range<Int>? = nil
  ) -> Generation.Head? {
    let start = Int(generation?.committedLength ?? 0)
    let first = frames.partitioningIndex { $0.offset >= UInt64(start) }
    let landmarks = landmarks.filter { $0.landmark.range.lowerBound >= start }
    var heads: [Int: (head: Generation.Head, previous: CID?)] = [:]
    // The first in the file, of copies.
    var named: [CID: Generation.Head] = [:]
    for manifest in manifests {
      guard let head = self.head(manifest) else { continue }
      heads[manifest.frame] = (head, manifest.shape.previous)
      if named[head.cid] == nil { named[head.cid] = head }
    }
    var head = generation?.head.map { named[$0.cid] ?? $0 }
    var candidate: Generation.Head?
    // A copy of an older part of the file says nothing new.
    var newest = generation?.number ?? 0
    var rest = range == nil ? landmarks[...] : []
    func take(_ landmark: Landmark) {
      if let found = candidate { head = found }
      candidate = nil
      guard case .footer(let footer) = landmark, !footer.isInPlace, footer.number > newest,
        let cid = footer.head, let meant = named[cid]
      else { return }
      (head, newest) = (meant, footer.number)
    }
    for number in range ?? first..<frames.count {
      while let (count, landmark) = rest.first, count <= number {
        rest.removeFirst()
        take(landmark)
      }
      if let (found, previous) = heads[number], previous == (candidate ?? head)?.cid {
        candidate = found
      } else {
        candidate = nil
      }
    }
    for (_, landmark) in rest { take(landmark) }
    return candidate ?? head
  }
}

/// What footers say, compared with the frames before them.
extension Survey {
  /// Checks the footers that stand where they were written.
  ///
  /// - Parameters:
  ///   - generation: What is committed before the survey begins; nil for a survey of the whole
  ///     file.
  ///   - end: Footers from here on are not checked.
  ///   - isCounting: Whether every frame was examined and holds, so that counts can be compared.
  ///   - file: The file.
  ///   - note: Called with what is wrong.
  /// - Returns: The number of the last generation if each footer ended one; and whether bytes that
  ///   are no frame lie between them.
  func checkFooters(
    after generation: Generation? = nil, before end: Int, isCounting: Bool, in file: Span<UInt8>,
    _ note: (ArchiveError) -> Void
  ) -> (number: UInt64, isBroken: Bool) {
    var last = generation
    var number = generation?.number ?? 0
    var isBroken = false
    var frame = 0
    var sectionCount = firstOrdinal
    var streamLength = generation?.streamLength ?? UInt64(header?.frame.contentSize ?? 0)
    for (frameCount, landmark) in landmarks where landmark.range.lowerBound < end {
      while frame < frameCount {
        sectionCount += UInt64(frames[frame].sectionCount)
        streamLength += UInt64(frames[frame].contentSize)
        frame += 1
      }
      if case .gap = landmark { isBroken = true }
      guard case .footer(let seen) = landmark, seen.isInPlace else { continue }
      number += 1
      do throws(ArchiveError) {
        let footer = try Footer.read(file, seen.frame)
        let place = UInt64(seen.frame.offset)
        guard
          isBroken || footer.number == number && footer.previousFooterOffset == last?.footerOffset
        else {
          throw ArchiveError(
            .malformedFooter("it does not follow the one before it"), offset: place)
        }
        guard
          !isCounting || footer.sectionCount == sectionCount && footer.streamLength == streamLength
        else {
          throw ArchiveError(
            .malformedFooter(
              "it counts \(footer.sectionCount) sections in \(footer.streamLength) bytes, and there are "
                + "\(sectionCount) in \(streamLength)"), offset: place)
        }
        // The segments it names may be dead by now, and still have to be there.
        _ = try ArchiveIndex(footer, in: file)
        last = footer
      } catch {
        note(error)
      }
    }
    return (number, isBroken)
  }
}
