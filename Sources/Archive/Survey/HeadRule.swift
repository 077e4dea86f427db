internal import IPLD

/// Which manifest is the newest after what lies behind a footer, if it is made to count.
///
/// A manifest that names the head there was as the one before it becomes the head, if no data
/// follows it in its generation; so do several that lead from one to the other. A footer that holds
/// but was moved says which manifest was the newest up to there.
struct HeadRule {
  private let heads: [Int: Generation.Head]
  /// The first in the file, of copies.
  private let named: [CID: Generation.Head]
  private let previous: [Int: CID?]

  /// A rule for these manifests of a survey.
  init(_ manifests: [Survey.Manifest], _ survey: Survey) {
    var heads: [Int: Generation.Head] = [:]
    var named: [CID: Generation.Head] = [:]
    var previous: [Int: CID?] = [:]
    for manifest in manifests {
      guard let head = survey.head(manifest) else { continue }
      heads[manifest.frame] = head
      if named[head.cid] == nil { named[head.cid] = head }
      previous[manifest.frame] = .some(manifest.shape.previous)
    }
    self.heads = heads
    self.named = named
    self.previous = previous
  }

  /// The newest manifest behind what lies from a frame on.
  ///
  /// - Parameters:
  ///   - generation: What the last footer before it says; nil if there is none.
  ///   - survey: What there is.
  ///   - frames: The numbers of the frames that lie there.
  ///   - landmarks: What lies between them.
  func head(
    after generation: Generation?, in survey: Survey, _ frames: Range<Int>,
    _ landmarks: ArraySlice<(frameCount: Int, landmark: Survey.Landmark)>
  ) -> Generation.Head? {
    var head = generation?.head.map { named[$0.cid] ?? $0 }
    var candidate: Generation.Head?
    // A copy of an older part of the file says nothing new.
    var newest = generation?.number ?? 0
    var rest = landmarks
    func take(_ landmark: Survey.Landmark) {
      if let found = candidate { head = found }
      candidate = nil
      guard case .footer(let footer) = landmark, !footer.isInPlace, footer.number > newest,
        let cid = footer.head, let meant = named[cid]
      else { return }
      (head, newest) = (meant, footer.number)
    }
    for number in frames {
      while let (count, landmark) = rest.first, count <= number {
        rest.removeFirst()
        take(landmark)
      }
      if let found = heads[number], previous[number] == .some((candidate ?? head)?.cid) {
        candidate = found
      } else {
        candidate = nil
      }
    }
    for (_, landmark) in rest { take(landmark) }
    return candidate ?? head
  }
}
