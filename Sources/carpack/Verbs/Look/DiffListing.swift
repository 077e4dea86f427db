internal import ATProtocol
internal import Extraction
internal import IPLD
internal import Snapshots

/// Prints what changed, as it is found.
struct DiffListing {
  private let pair: SnapshotPair
  private let isJSON: Bool
  private var json = JSONWriter.ofResults
  /// The worst that was seen of a blob.
  private(set) var worst = ExitStatus.success

  init(_ pair: SnapshotPair, isJSON: Bool) {
    self.pair = pair
    self.isJSON = isJSON
  }

  /// Prints a record that is not the same in both snapshots.
  mutating func add(_ change: MSTDiff.RecordChange) {
    let (sign, word): (Console.Sign, String) =
      change.old == nil
      ? (.plus, "created") : change.new == nil ? (.minus, "deleted") : (.change, "updated")
    guard isJSON else {
      Console.print(sign, change.path)
      return
    }
    json.begin(.diff)
    json.field("kind", "record")
    json.field("change", word)
    json.field("path", change.path)
    json.field("old", change.old.map { "\($0)" })
    json.field("new", change.new.map { "\($0)" })
    endLine()
  }

  /// Prints the blobs that came and went, in one order, and the sum.
  ///
  /// - Throws: `ArchiveError` and `SnapshotError` if an archive cannot be read.
  mutating func add(_ diff: SnapshotDiff, old: ArchivedSnapshot, new: ArchivedSnapshot) throws {
    var (added, gone) = (diff.addedBlobs[...], diff.goneBlobs[...])
    // All at once, and by their sizes, so that none is fetched for it from elsewhere.
    func states(_ blobs: ArraySlice<BlobTable.Entry>, _ archived: ArchivedSnapshot) throws
      -> ArraySlice<BlobState>
    {
      try archived.states(of: blobs.map(\.cid), sizes: blobs.map(\.size))[...]
    }
    var (statesOfAdded, statesOfGone) = (try states(added, new), try states(gone, old))
    while let next = added.first ?? gone.first {
      if let other = gone.first, added.isEmpty || "\(other.cid)" < "\(next.cid)" {
        add(gone.removeFirst(), isAdded: false, state: statesOfGone.removeFirst())
      } else {
        add(added.removeFirst(), isAdded: true, state: statesOfAdded.removeFirst())
      }
    }
    if isJSON { printSummary(diff, complete: diff.gapCount == 0) } else { Console.print(sum(diff)) }
  }

  private mutating func add(_ blob: BlobTable.Entry, isAdded: Bool, state: BlobState) {
    var size = blob.size.map { UInt64(clamping: $0) }
    let mark: String?
    switch state {
    case .held(let length): (mark, size) = (nil, length)
    case .missing: mark = "missing"
    case .damaged:
      mark = "damaged"
      worst = .damaged
    }
    guard isJSON else {
      let words = ["\(blob.cid)", blob.mimeType ?? "-", size.map { Quantity.bytes($0) } ?? "-"]
      let text = words.joined(separator: "  ") + (mark.map { "  [\($0)]" } ?? "")
      Console.print(isAdded ? .plus : .minus, text)
      return
    }
    json.begin(.diff)
    json.field("kind", "blob")
    json.field("change", isAdded ? "added" : "gone")
    json.field("cid", "\(blob.cid)")
    json.field("path", blob.firstRecord)
    json.field("type", blob.mimeType)
    json.field("size", size.map { Int(clamping: $0) })
    json.field("state", mark ?? "held")
    endLine()
  }

  private func sum(_ diff: SnapshotDiff) -> String {
    "\(pair.account), \(name(pair.old)) to \(name(pair.new)): "
      + "\(Quantity.count(diff.createdCount, "record")) created, \(Quantity.grouped(diff.updatedCount)) updated, "
      + "\(Quantity.grouped(diff.deletedCount)) deleted; \(Quantity.count(diff.addedBlobs.count, "blob")) added, "
      + "\(Quantity.grouped(diff.goneBlobs.count)) gone"
  }

  private func name(_ entry: SnapshotHistory.Entry) -> String {
    "number \(entry.number)" + (entry.rev.map { " (\($0.text))" } ?? "")
  }

  private mutating func printSummary(_ diff: SnapshotDiff, complete: Bool) {
    json.begin(.diff)
    json.field("kind", "summary")
    json.field("account", pair.new.did.text)
    for (key, entry) in [("old", pair.old), ("new", pair.new)] {
      json.beginObject(key)
      json.field("number", entry.number)
      json.field("manifest", "\(entry.cid)")
      json.field("commit", "\(entry.commit)")
      json.field("rev", entry.rev?.text)
      json.field("createdAt", entry.createdAt)
      json.endObject()
    }
    json.field("created", diff.createdCount)
    json.field("updated", diff.updatedCount)
    json.field("deleted", diff.deletedCount)
    json.field("blobsAdded", diff.addedBlobs.count)
    json.field("blobsGone", diff.goneBlobs.count)
    json.field("nodesCreated", diff.createdNodeCount)
    json.field("nodesDeleted", diff.deletedNodeCount)
    json.field("complete", complete)
    endLine()
  }

  private mutating func endLine() {
    Console.finish(&json)
  }
}
