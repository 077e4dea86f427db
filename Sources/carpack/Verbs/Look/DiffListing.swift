internal import ATProtocol
internal import Extraction
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal

/// Prints what changed, as it is found.
struct DiffListing {
  private let pair: SnapshotPair
  private let isJSON: Bool
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
    if isJSON {
      Self.record.print((change, word))
    } else {
      Console.print(sign, change.path)
    }
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
    if isJSON { Self.summary.print((pair, diff)) } else { Console.print(sum(diff)) }
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
    Self.blob.print((blob, isAdded, size, mark ?? "held"))
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

  // MARK: JSON

  static let record = Report<(change: MSTDiff.RecordChange, word: String)>(
    "diff", "`carpack diff`: a record that changed."
  ) {
    Field("kind", "", .one(of: "record")) { _ in "record" }
    Field("change", "how", .one(of: "created", "updated", "deleted")) { $0.word }
    Field("path", "collection/rkey") { $0.change.path }
    Field("old", "the record before") { $0.change.old }
    Field("new", "the record after") { $0.change.new }
  }

  static let blob = Report<(entry: BlobTable.Entry, isAdded: Bool, size: UInt64?, state: String)>(
    "diff", "Or a blob that came or went."
  ) {
    Field("kind", "", .one(of: "blob")) { _ in "blob" }
    Field("change", "how", .one(of: "added", "gone")) { $0.isAdded ? "added" : "gone" }
    Field("cid", "the blob") { $0.entry.cid }
    Field("path", "the first record that refers to it") { $0.entry.firstRecord }
    Field("type", "its media type") { $0.entry.mimeType }
    Field("size", "its bytes") { $0.size }
    Field("state", "whether it is there", .one(of: "held", "missing", "damaged")) { $0.state }
  }

  private static let end = Fields<SnapshotHistory.Entry> {
    Field("number", "its number") { $0.number }
    Field("manifest", "its manifest") { $0.cid }
    Field("commit", "its commit") { $0.commit }
    Field("rev", "its revision") { $0.rev?.text }
    Field("createdAt", "when it was made") { $0.createdAt }
  }

  static let summary = Report<(pair: SnapshotPair, diff: SnapshotDiff)>(
    "diff", "Or, at last, the sum."
  ) {
    Field("kind", "", .one(of: "summary")) { _ in "summary" }
    Field("account", "the account") { $0.pair.new.did }
    Field("old", "the first snapshot", { $0.pair.old }, as: end)
    Field("new", "the second", { $0.pair.new }, as: end)
    Field("created", "records created") { $0.diff.createdCount }
    Field("updated", "records updated") { $0.diff.updatedCount }
    Field("deleted", "records deleted") { $0.diff.deletedCount }
    Field("blobsAdded", "blobs that came") { $0.diff.addedBlobs.count }
    Field("blobsGone", "blobs that went") { $0.diff.goneBlobs.count }
    Field("nodesCreated", "tree nodes that came") { $0.diff.createdNodeCount }
    Field("nodesDeleted", "tree nodes that went") { $0.diff.deletedNodeCount }
    Field("complete", "whether all could be compared") { $0.diff.gapCount == 0 }
  }
}
