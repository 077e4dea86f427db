internal import Archive
internal import IPLD

/// Which manifest was the newest at which length of the file, as the footers tell.
struct GrowthLog {
  /// A manifest, and the file's length when a footer first named it as the newest.
  struct Head {
    let cid: CID
    var committedLength: UInt64
  }

  /// The newest manifests of all generations, the newest first; each once.
  private(set) var heads: [Head] = []
  /// Why older generations are not known; nil if all are.
  private(set) var failure: ArchiveError?
  private var positions: [CID: Int] = [:]

  /// A log of nothing.
  init() {}

  /// Reads the footers.
  init(of reader: ArchiveReader) {
    var generations = reader.generations
    do throws(ArchiveError) {
      while let generation = try generations.next() {
        guard let cid = generation.head?.cid else { continue }
        if heads.last?.cid == cid {
          heads[heads.count - 1].committedLength = generation.committedLength
        } else if positions[cid] == nil, heads.count <= SnapshotHistory.maximumCount {
          positions[cid] = heads.count
          heads.append(Head(cid: cid, committedLength: generation.committedLength))
        }
      }
    } catch {
      failure = error
    }
  }

  /// By how many bytes the file grew for this manifest; nil if that is not known.
  ///
  /// - Parameter previous: the manifest before it. If the footers name another in between, or none, several were written at once, as by compacting, or
  ///   the manifest was written again without its content, as by pruning.
  func bytesAdded(by manifest: CID, after previous: CID?) -> UInt64? {
    guard let position = positions[manifest] else { return nil }
    let length = heads[position].committedLength
    if position + 1 < heads.count {
      let earlier = heads[position + 1]
      return earlier.cid == previous ? length - earlier.committedLength : nil
    }
    // The first of all generations that there were, or only of those that are known.
    guard previous == nil else { return nil }
    return failure == nil && heads.count <= SnapshotHistory.maximumCount ? length : nil
  }
}
