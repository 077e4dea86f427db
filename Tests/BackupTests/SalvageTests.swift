import ATProtocol
import Archive
import ArchiveTestSupport
import Copying
import Extraction
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Testing
import Verification

@Suite struct `What is left of a damaged archive` {
  private struct Sample {
    let packed: Packed
    let bytes: [UInt8]
    let blobs: [[UInt8]]

    init() throws {
      var random = SeededGenerator(printing: 0x5a1f_0001)
      blobs = [SampleFile.png("a"), SampleFile.png("b"), random.bytes(70_000)]
      var repository = try TestRepository(posts: 50)
      for (number, blob) in blobs.enumerated() {
        try repository.add("a.b.c/\(number)", blob: .blob(blob))
      }
      packed = try Packed(
        car: try repository.car(),
        blobs: Dictionary(uniqueKeysWithValues: blobs.enumerated().map { ("\($0)", $1) }))
      bytes = try packed.bytes
    }

    /// Where the frame with a section begins in the file.
    func offset(of cid: CID) throws -> Int {
      let reader = try packed.reader
      let file = try MappedFile(packed.path)
      let ordinal = try #require(try reader.ordinal(of: cid))
      return try file.withBytes { bytes throws in
        let index = try ArchiveIndex(reader.generation, in: bytes)
        var best = 0
        if let row = index.row(of: ordinal, in: bytes) {
          best = Int(row.entry.offset)
        }
        return best
      }
    }

    /// A reader of the archive with other bytes.
    func reader(_ bytes: [UInt8]) throws -> ArchiveReader {
      try ArchiveReader(path: FilePath(packed.folder.write("damaged.car.zst", bytes)))
    }

    /// The CIDs of all blobs that an extraction gives back.
    func extractedBlobs(_ snapshot: ArchivedSnapshot) throws -> (
      blobs: Set<CID>, report: SnapshotExtractor.Report
    ) {
      let folder = try TemporaryFolder()
      var selection = Selection()
      selection.blobs = true
      let report = try SnapshotExtractor.extract(
        selection, of: snapshot, into: OutputFolder(folder.path))
      let names = folder.names().filter { !$0.hasSuffix(".sha256") }
      return (Set(try names.map { .blob(try folder.read($0)) }), report)
    }

    var allBlobs: Set<CID> { Set(blobs.map { .blob($0) }) }
  }

  @Test func `without its footer is everything, but nobody vouches for it`() throws {
    let sample = try Sample()
    let footer = try sample.packed.reader.generation.footerOffset
    let reader = try sample.reader(Array(sample.bytes.prefix(Int(footer))))
    let snapshot = try ArchivedSnapshot.newest(in: reader)
    #expect(snapshot.snapshot == sample.packed.report.snapshot)
    let (blobs, report) = try sample.extractedBlobs(snapshot)
    #expect(blobs == sample.allBlobs)
    #expect(report.damaged.isEmpty)
    let restored = try RestoredRepository(snapshot)
    #expect(restored.isExact)
    #expect(try SnapshotVerifier().verify(reader, .full).verdict == .damaged)
  }

  @Test func `without its manifest is found out from the rest`() throws {
    let sample = try Sample()
    let head = try #require(sample.packed.report.generation.head)
    var bytes = sample.bytes
    bytes[Int(head.frameOffset) + 20] ^= 0xff
    let reader = try sample.reader(bytes)
    #expect(throws: (any Error).self) { try ArchivedSnapshot.newest(in: reader) }
    let snapshot = try ArchivedSnapshot.salvaged(from: reader)
    #expect(snapshot.cid == nil)
    #expect(snapshot.snapshot.did == sample.packed.report.snapshot.did)
    #expect(snapshot.snapshot.counts.records == 53)
    #expect(try sample.extractedBlobs(snapshot).blobs == sample.allBlobs)
    #expect(try SnapshotVerifier().verify(reader, .full).verdict == .damaged)
  }

  @Test func `without its manifest calls blobs lost that were cut off with it`() throws {
    let sample = try Sample()
    let large = CID.blob(sample.blobs[2])
    let reader = try sample.reader(Array(sample.bytes.prefix(try sample.offset(of: large))))
    let path = FilePath(sample.packed.folder.file("left.car.zst"))
    let report = try ArchiveCopier().salvage(
      reader, into: FileStorage.create(path),
      by: SnapshotBuilder.Provenance(
        tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 }))
    #expect(report.snapshots.map(\.loss.blobs) == [[large]])
    let left = try ArchivedSnapshot.newest(in: ArchiveReader(path: path))
    #expect(try left.missingBlobs().map { [$0.cid: $0.reason] } == [[large: .lost]])
    #expect(left.snapshot.blobs.held == 2)
  }

  @Test
  func `has a large blob called damaged that is so behind its beginning, where it is checked`()
    throws
  {
    let sample = try Sample()
    let large = CID.blob(sample.blobs[2])
    var bytes = sample.bytes
    bytes[try sample.offset(of: large) + 40_000] ^= 0xff
    let snapshot = try ArchivedSnapshot.newest(in: sample.reader(bytes))
    guard case .damaged = try snapshot.states(of: [large], isChecking: true)[0] else {
      Issue.record("the blob is not called damaged")
      return
    }
  }

  @Test func `with its commit gone is at least its blobs`() throws {
    let sample = try Sample()
    let commit = sample.packed.report.snapshot.commit
    var bytes = sample.bytes
    bytes[try sample.offset(of: commit) + 30] ^= 0xff
    let reader = try sample.reader(bytes)
    let snapshot = try ArchivedSnapshot.newest(in: reader)
    let readable = Set(
      sample.blobs.filter { (try? reader.body(of: .blob($0))) == $0 }.map { CID.blob($0) })
    #expect(readable.contains(.blob(sample.blobs[2])))
    let (blobs, report) = try sample.extractedBlobs(snapshot)
    #expect(blobs.isSuperset(of: readable))
    #expect(!report.damaged.isEmpty)
  }

  @Test func `is said to be damaged where a selection comes to less than it should`() throws {
    let sample = try Sample()
    var bytes = sample.bytes
    bytes[try sample.offset(of: sample.packed.report.snapshot.commit) + 30] ^= 0xff
    let snapshot = try ArchivedSnapshot.newest(in: sample.reader(bytes))
    for selection in [
      { $0.records = true }, { $0.blobs = true }, { $0.car = true },
      { $0.items = [.record("a.b.c/0")] },
    ] as [(inout Selection) -> Void] {
      var wanted = Selection()
      selection(&wanted)
      let folder = try TemporaryFolder()
      let report = try SnapshotExtractor.extract(
        wanted, of: snapshot, into: OutputFolder(folder.path))
      #expect(!report.damaged.isEmpty)
    }
  }

  @Test func `gives no single record for missing that damage has taken`() throws {
    let sample = try Sample()
    let blocks = try ArchivedSnapshot.newest(in: sample.reader(sample.bytes))
    let record = try #require(try blocks.record("a.b.c/0"))
    var bytes = sample.bytes
    bytes[try sample.offset(of: record.cid) + 40] ^= 0xff
    let snapshot = try ArchivedSnapshot.newest(in: sample.reader(bytes))
    var selection = Selection()
    selection.items = [.record("a.b.c/0")]
    let folder = try TemporaryFolder()
    let report = try SnapshotExtractor.extract(
      selection, of: snapshot, into: OutputFolder(folder.path))
    #expect(report.damaged.contains { $0.what == "a.b.c/0" })
    #expect(report.missingRecords == [])
  }
}
