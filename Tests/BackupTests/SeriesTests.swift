import ATProtocol
import Archive
import Extraction
import IPLD
internal import Packing
import Snapshots
import TestSupport
import Testing

/// What a `series.json` of the corpus says of two snapshots that follow each other.
private struct Pair: Decodable {
  var from_file: String
  var to_file: String
  var created: Int
  var deleted: Int
  var updated: Int
  var created_sha256: String
  var deleted_sha256: String
  var updated_sha256: String
  var new_blob_cids: [String]
  var dropped_blob_cids: [String]
}

/// The lines that a series has the digests of.
private struct Lines: Equatable {
  var created: [String] = []
  var updated: [String] = []
  var deleted: [String] = []

  mutating func take(_ change: MSTDiff.RecordChange) {
    switch (change.old, change.new) {
    case (nil, let new?): created.append("\(change.path) \(new)")
    case (.some, let new?): updated.append("\(change.path) \(new)")
    default: deleted.append(change.path)
    }
  }

  static func digest(_ lines: [String]) -> String {
    "\(SHA256.digest(of: Array(lines.map { $0 + "\n" }.joined().utf8).span))"
  }
}

@Suite(.enabled(if: Corpus.isPresent, Comment(rawValue: Corpus.absence)))
struct `A series of real snapshots` {
  @Test(arguments: Corpus.files(under: "repos", suffix: "/series.json"))
  func `differs from one to the next as listed, there and back`(name: String) throws {
    let folder = String(name.dropLast("/series.json".count))
    var archives: [String: Packed] = [:]
    func snapshot(_ file: String) throws -> ArchivedSnapshot {
      if archives[file] == nil {
        archives[file] = try Packed(car: try Corpus.bytes("\(folder)/\(file)"))
      }
      return try #require(archives[file]).snapshot
    }
    let pairs = try Corpus.json(name, as: [Pair].self)
    #expect(!pairs.isEmpty)
    // The same snapshots, appended to one another.
    var series = try Series()
    var heads: [String: CID] = [:]
    for file in try #require(pairs.first.map { [$0.from_file] }) + pairs.map(\.to_file) {
      let report = try series.pack(try Corpus.bytes("\(folder)/\(file)"))
      heads[file] = try #require(report.generation.head).cid
    }
    let reader = try series.reader
    func inOneFile(_ file: String) throws -> ArchivedSnapshot {
      try ArchivedSnapshot(try #require(heads[file]), in: reader)
    }
    for pair in pairs {
      let (from, to) = (try snapshot(pair.from_file), try snapshot(pair.to_file))
      let place: Comment = "\(pair.from_file) to \(pair.to_file)"
      var lines = Lines()
      let diff = try SnapshotDiff.compare(from, to) { lines.take($0) }
      #expect(diff.createdCount == pair.created, place)
      #expect(diff.updatedCount == pair.updated, place)
      #expect(diff.deletedCount == pair.deleted, place)
      #expect(Lines.digest(lines.created.sorted()) == pair.created_sha256, place)
      #expect(Lines.digest(lines.updated.sorted()) == pair.updated_sha256, place)
      #expect(Lines.digest(lines.deleted.sorted()) == pair.deleted_sha256, place)
      #expect(diff.addedBlobs.map { "\($0.cid)" } == pair.new_blob_cids, place)
      #expect(diff.goneBlobs.map { "\($0.cid)" } == pair.dropped_blob_cids, place)
      #expect(diff.gapCount == 0, place)

      let back = try SnapshotDiff.compare(to, from)
      #expect(back.createdCount == pair.deleted, place)
      #expect(back.updatedCount == pair.updated, place)
      #expect(back.deletedCount == pair.created, place)
      #expect(back.addedBlobs.map(\.cid) == diff.goneBlobs.map(\.cid), place)
      #expect(back.goneBlobs.map(\.cid) == diff.addedBlobs.map(\.cid), place)
      #expect(back.createdNodeCount == diff.deletedNodeCount, place)
      #expect(back.deletedNodeCount == diff.createdNodeCount, place)

      let (one, other) = (try inOneFile(pair.from_file), try inOneFile(pair.to_file))
      var again = Lines()
      let same = try SnapshotDiff.compare(one, other) { again.take($0) }
      #expect(again == lines, place)
      #expect(same.addedBlobs.map(\.cid) == diff.addedBlobs.map(\.cid), place)
      #expect(same.goneBlobs.map(\.cid) == diff.goneBlobs.map(\.cid), place)
      #expect(same.createdNodeCount == diff.createdNodeCount, place)
      #expect(same.deletedNodeCount == diff.deletedNodeCount, place)
    }
    // From the first to the last, and from each to itself.
    let files = Set(pairs.flatMap { [$0.from_file, $0.to_file] })
    for file in files {
      let same = try SnapshotDiff.compare(try snapshot(file), try snapshot(file))
      #expect(same.isEmpty && same.createdNodeCount + same.deletedNodeCount == 0)
    }
    let (first, last) = (
      try snapshot(try #require(pairs.first).from_file),
      try snapshot(try #require(pairs.last).to_file)
    )
    let whole = try SnapshotDiff.compare(first, last)
    #expect(
      first.snapshot.counts.records + whole.createdCount - whole.deletedCount
        == last.snapshot.counts.records)
    #expect(
      first.snapshot.blobs.referenced + whole.addedBlobs.count - whole.goneBlobs.count
        == last.snapshot.blobs.referenced)
  }
}
