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

  /// The newest manifest after what lies after a footer, if it is made to count.
  ///
  /// It is the end of the longest chain of manifests that continues from the newest there was. Only
  /// what ends its generation can be an end: no data follows it there, but other manifests may. The
  /// others of the chain may lie anywhere, because a repair may have written them again. A footer
  /// that holds but was moved says which manifest was the newest up to there, unless that leads to
  /// no more than the last footer in place does.
  ///
  /// - Parameters:
  ///   - manifests: What may be manifests.
  ///   - generation: What the last footer before it says; nil if there is none.
  ///   - range: The numbers of the frames that lie there, with nothing between them; nil for all
  ///     that lies after the footer.
  func head(
    of manifests: [Manifest], after generation: Generation?, in range: Range<Int>? = nil
  ) -> Generation.Head? {
    var followers: [CID?: [CID]] = [:]
    // The first in the file, of copies.
    var named: [CID: (head: Generation.Head, previous: CID?)] = [:]
    for manifest in manifests {
      guard let head = self.head(manifest), named[head.cid] == nil else { continue }
      named[head.cid] = (head, manifest.shape.previous)
      followers[manifest.shape.previous, default: []].append(head.cid)
    }
    var (newest, start) = (generation?.head, generation?.committedLength ?? 0)
    let moved = movedFooters(after: generation) {
      Set(sequence(first: newest?.cid) { $0.flatMap { named[$0]?.previous } }.compactMap(\.self))
    }
    let last = moved.filter { $0.head.map { named[$0] != nil } ?? false }
      .max { $0.isOlder(than: $1) }
    if range == nil, let last {
      (newest, start) = (last.head.flatMap { named[$0]?.head }, UInt64(last.frame.offset))
    }
    let place = frames.partitioningIndex { $0.offset >= start }
    let ends = self.ends(manifests, in: range ?? place..<frames.count)
    var end: (depth: Int, head: Generation.Head)?
    var open = [(cid: newest?.cid, depth: 0)]
    // Where no footer says what was the newest, a chain may also begin after a manifest that is
    // lost.
    if newest == nil {
      open += followers.keys.filter { $0.map { named[$0] == nil } ?? false }.map { ($0, 0) }
    }
    while let (cid, depth) = open.popLast() {
      for next in followers[cid] ?? [] {
        if let head = ends[next],
          end.map({ ($0.depth, $0.head.frameOffset) < (depth + 1, head.frameOffset) }) ?? true
        {
          end = (depth + 1, head)
        }
        open.append((next, depth + 1))
      }
    }
    return end?.head ?? newest.map { named[$0.cid]?.head ?? $0 }
  }

  /// The manifests that no data that counts follows in their generations, among these frames.
  private func ends(_ manifests: [Manifest], in range: Range<Int>) -> [CID: Generation.Head] {
    let heads = Dictionary(
      manifests.map { ($0.frame, head($0)) }, uniquingKeysWith: { first, _ in first })
    let boundaries = Set(landmarks.map(\.frameCount))
    var ends: [CID: Generation.Head] = [:]
    var isEnd = true
    for number in range.reversed() {
      isEnd = isEnd || boundaries.contains(number + 1)
      if frames[number].firstOrdinal == .max { continue }
      guard isEnd, let head = heads[number] ?? nil else {
        isEnd = false
        continue
      }
      ends[head.cid] = ends[head.cid] ?? head
    }
    return ends
  }
}
