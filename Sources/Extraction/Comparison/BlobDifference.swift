internal import ATProtocol
internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// Finds the blobs that only one of two snapshots refers to, given the records that are not the
/// same in both.
///
/// A blob that came or went is one that a changed record refers to, before or after. It did come or
/// go unless another record of the other snapshot refers to it as well; to know that, all records
/// of it are looked through, in one go.
///
/// When much has changed, both snapshots are looked through from the start. What that takes is
/// known beforehand, however often a hostile tree names one long record.
struct BlobDifference {
  /// How many records are read one by one.
  private static let maximumReads = 1000
  /// How many bytes of records are read one by one.
  private static let maximumReadLength = 16 << 20

  private let old: SnapshotBlocks
  private let new: SnapshotBlocks
  private var found: [MSTDiff.Side: BlobTable] = [.old: BlobTable(), .new: BlobTable()]
  private var scanner = RecordScanner()
  private var readCount = 0
  private var readLength = 0
  /// What could not be read.
  private(set) var gaps: [SnapshotDiff.Gap] = []
  /// How many there are of that.
  private(set) var gapCount = 0

  init(old: SnapshotBlocks, new: SnapshotBlocks) {
    self.old = old
    self.new = new
  }

  /// Whether there was too much to read one by one.
  private var isLarge: Bool {
    readCount > Self.maximumReads || readLength > Self.maximumReadLength
  }

  /// Takes in the blobs that a record refers to, before and after.
  mutating func read(_ change: MSTDiff.RecordChange) throws {
    if let cid = change.old { try read(cid, change.key, .old) }
    if let cid = change.new { try read(cid, change.key, .new) }
  }

  private mutating func read(_ cid: CID, _ key: [UInt8], _ side: MSTDiff.Side) throws {
    guard !isLarge, !blocks(side).isPlainRecord(cid) else { return }
    readCount += 1
    let bytes: [UInt8]
    do {
      guard let found = try blocks(side).body(of: cid) else {
        note(side, "\(path(key)) is not in the archive", isDamage: wasComplete(side))
        return
      }
      bytes = found
    } catch let error as ArchiveError {
      note(side, "\(path(key)): \(error)", isDamage: true)
      return
    }
    readLength += bytes.count
    _ = scanner.scan(bytes.span) { ref in
      found[side]?.insert(ref, from: key)
    }
  }

  /// The blobs that came and went, once all changes have been taken in.
  mutating func settle() throws -> (added: [BlobTable.Entry], gone: [BlobTable.Entry]) {
    if isLarge {
      // What was not there one by one is not there all at once.
      (gaps, gapCount) = ([], 0)
      found = [.old: try allBlobs(.old), .new: try allBlobs(.new)]
    }
    return (try only(in: .new, not: .old), try only(in: .old, not: .new))
  }

  /// The blobs of one side, in the order of their CIDs as text.
  private mutating func only(in side: MSTDiff.Side, not other: MSTDiff.Side) throws
    -> [BlobTable.Entry]
  {
    guard let own = found[side], let others = found[other] else { return [] }
    var entries = own.entries.filter { !others.contains($0.cid) }
    if !isLarge, !entries.isEmpty {
      let all = try allBlobs(other)
      entries.removeAll { all.contains($0.cid) }
    }
    return entries.map { ($0, text: "\($0.cid)") }.sorted { $0.text < $1.text }.map(\.0)
  }

  /// The blobs that any record of a snapshot refers to.
  private mutating func allBlobs(_ side: MSTDiff.Side) throws -> BlobTable {
    let contents = try blocks(side).contents()
    if let flaw = contents.flaw { note(side, flaw, isDamage: true) }
    let tree = contents.tree
    if !tree.isComplete {
      note(
        side,
        "\(tree.missingRecordCount) records and \(tree.missingNodes.count) tree nodes are not in the archive",
        isDamage: wasComplete(side))
    }
    return contents.blobs
  }

  private func blocks(_ side: MSTDiff.Side) -> SnapshotBlocks { side == .old ? old : new }

  /// Whether everything was there when the snapshot was made.
  private func wasComplete(_ side: MSTDiff.Side) -> Bool {
    blocks(side).archived.snapshot.isComplete
  }

  private func path(_ key: [UInt8]) -> String { String(decoding: key, as: UTF8.self) }

  private mutating func note(_ side: MSTDiff.Side, _ what: String, isDamage: Bool) {
    gapCount += 1
    if gaps.count < RepositoryInspection.maximumListed {
      gaps.append(SnapshotDiff.Gap(side: side, what: what, isDamage: isDamage))
    }
  }
}
