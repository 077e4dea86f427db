internal import Archive
internal import IPLD

/// Which manifest was the newest at which length of the file, as the footers tell.
struct GrowthLog {
  /// The newest manifests of all generations, the newest first, each once; and the file's length
  /// when a footer first named it.
  private(set) var heads: [(cid: CID, offset: UInt64)] = []
  /// Why older generations are not known; nil if all are.
  private(set) var failure: ArchiveError?
  /// Whether older manifests were left out.
  private var isCut = false
  private var positions: [CID: Int] = [:]

  /// A log of nothing.
  init() {}

  /// Reads the footers, as far as they name no more than so many manifests.
  init(of reader: ArchiveReader, limit: Int) {
    var generations = reader.generations
    do throws(ArchiveError) {
      while let generation = try generations.next() {
        guard let cid = generation.head?.cid else { continue }
        if heads.last?.cid == cid {
          heads[heads.count - 1].offset = generation.committedLength
        } else if positions[cid] == nil {
          guard heads.count <= limit else {
            isCut = true
            break
          }
          positions[cid] = heads.count
          heads.append((cid, generation.committedLength))
        }
      }
    } catch {
      failure = error
    }
  }

  /// By how many bytes the file grew for this manifest; nil if that is not known.
  ///
  /// - Parameter previous: the manifest before it. If the footers name another in between, or none,
  ///   several were written at once, as by compacting, or the manifest was written again without
  ///   its content, as by pruning.
  func bytesAdded(by manifest: CID, after previous: CID?) -> UInt64? {
    guard let position = positions[manifest] else { return nil }
    let length = heads[position].offset
    guard position + 1 < heads.count else {
      // The first of all generations that there were, or only of those that are known.
      return previous == nil && failure == nil && !isCut ? length : nil
    }
    // A generation that is not known may have named the oldest manifest before those that are.
    guard heads[position + 1].cid == previous, failure == nil || position + 2 < heads.count else {
      return nil
    }
    return length - heads[position + 1].offset
  }
}
