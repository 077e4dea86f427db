import ATProtocol
import Archive
import ArchiveTestSupport
import IPLD
internal import Packing
internal import Snapshots
import TestSupport
import Testing
import Verification

@Suite struct `An archive with records that cannot be read` {
  private static let image = SampleFile.png("an image")
  private static let hidden = SampleFile.png("an image in a record that cannot be read")

  /// A repository with a record that cannot be read, and ends where it may refer to more, if it is
  /// cut off.
  private func repository(isCutOff: Bool) throws -> TestRepository {
    var repository = try TestRepository(posts: 20)
    try repository.add("app.bsky.feed.post/image", blob: .blob(Self.image))
    let reference = try DAGCBOREncoder.encode(
      .map([
        "$type": .string("blob"), "ref": .link(.blob(Self.hidden)), "size": .integer(1),
        "mimeType": .string("image/png"),
      ]))
    repository.add(
      "app.test/odd", bytes: [isCutOff ? 0x83 : 0x82] + reference + [0xf9, 0x3c, 0x00])
    return repository
  }

  private func packed(_ repository: TestRepository, _ blobs: [[UInt8]]) throws -> Packed {
    var files: [String: [UInt8]] = [:]
    for (number, blob) in blobs.enumerated() { files["\(number)"] = blob }
    return try Packed(car: repository.car(), blobs: files)
  }

  @Test func `holds their blobs, and is whole if no blob can have been overlooked`() throws {
    let packed = try packed(repository(isCutOff: false), [Self.image, Self.hidden])
    let snapshot = packed.report.snapshot
    #expect(snapshot.unreadable == UnreadableRecords(count: 1))
    #expect(snapshot.blobs.referenced == 2 && snapshot.blobs.held == 2 && snapshot.isWhole)
    let verified = try packed.verify()
    #expect(verified.verdict == .intact && verified.damage == [])
    #expect(verified.snapshots[0].unreadable == UnreadableRecords(count: 1))
    #expect(try packed.verify(.quick).verdict == .intact)
  }

  @Test func `names a blob of theirs that is missing`() throws {
    let packed = try packed(repository(isCutOff: false), [Self.image])
    #expect(packed.report.missing.map(\.cid) == [.blob(Self.hidden)])
    #expect(try packed.verify().missingBlobs.map(\.cid) == [.blob(Self.hidden)])
  }

  @Test func `is incomplete if a blob may have been overlooked, at each look`() throws {
    let packed = try packed(repository(isCutOff: true), [Self.image, Self.hidden])
    let unreadable = UnreadableRecords(count: 1, partlySearchedCount: 1)
    let snapshot = packed.report.snapshot
    #expect(snapshot.unreadable == unreadable)
    #expect(snapshot.blobs.held == 2 && snapshot.hasEverythingKnown && !snapshot.isWhole)
    #expect(try packed.snapshot.snapshot.unreadable == unreadable)
    for depth in [SnapshotVerifier.Depth.full, .quick] {
      let verified = try packed.verify(depth)
      #expect(verified.verdict == .incomplete && verified.damage == [])
      #expect(verified.snapshots[0].unreadable == unreadable)
    }
  }

  @Test func `of an earlier version, which did not count them, is not damaged`() throws {
    for isCutOff in [false, true] {
      let folder = try TemporaryFolder()
      let repository = try repository(isCutOff: isCutOff)
      let image = Block(cid: .blob(Self.image), bytes: Self.image)
      let path = try handMadeArchive(in: folder, repository, further: [image]) {
        ($0.blobs.referenced, $0.blobs.held) = (1, 1)
        $0.unreadable = UnreadableRecords()
      }
      let verified = try SnapshotVerifier().verify(ArchiveReader(path: path), .full)
      #expect(verified.damage == [])
      #expect(verified.verdict == .incomplete)
      #expect(verified.missingBlobs.map(\.cid) == [.blob(Self.hidden)])
    }
  }

  @Test func `that counts more blobs than its records refer to is damaged`() throws {
    let folder = try TemporaryFolder()
    let path = try handMadeArchive(in: folder, repository(isCutOff: false)) {
      ($0.blobs.referenced, $0.blobs.held) = (3, 0)
    }
    let verified = try SnapshotVerifier().verify(ArchiveReader(path: path), .full)
    #expect(verified.damage == ["the manifest's figures do not match the repository"])
  }
}
