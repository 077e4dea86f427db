import ATProtocol
import Archive
import ArchiveTestSupport
import Files
import IPLD
import Snapshots
import SystemPackage
import TestSupport
import Testing

@Suite struct `The history of an archive` {
  /// A repository that grows by a post with each number.
  private static func repository(_ number: Int) throws -> TestRepository {
    var repository = try TestRepository(posts: 3 + number)
    repository.rev = TID(integer: UInt64(1_700_000_000_000_000 + number) << 10).text
    return repository
  }

  private static func series(_ count: Int) throws -> SeriesArchive {
    var archive = try SeriesArchive()
    for number in 0..<count {
      try archive.add(
        repository(number).car(), handle: "alice.test",
        at: "2026-01-\(String(number + 11))T03:04:05Z")
    }
    return archive
  }

  @Test func `has every snapshot, the oldest first`() throws {
    let archive = try Self.series(5)
    let history = try SnapshotHistory(of: archive.reader())
    #expect(history.entries.allSatisfy { $0.isVouched })
    #expect(history.breaks == [])
    #expect(history.entries.map(\.number) == [1, 2, 3, 4, 5])
    #expect(history.entries.map(\.cid) == archive.snapshots.map(\.cid))
    for (entry, made) in zip(history.entries, archive.snapshots) {
      let snapshot = made.snapshot
      #expect(entry.did == snapshot.did && entry.handle == snapshot.handle)
      #expect(entry.rev == snapshot.rev && entry.commit == snapshot.commit)
      #expect(entry.createdAt == snapshot.createdAt)
      #expect(entry.moment == Moment(snapshot.createdAt))
      #expect(entry.counts == snapshot.counts && entry.blobs == snapshot.blobs)
      #expect(entry.isComplete)
      #expect(entry.carByteCount == UInt64(made.car.count))
      #expect(entry.carSHA256 == SHA256.digest(of: made.car.span))
      #expect(try ArchivedSnapshot(entry.cid, in: archive.reader()).snapshot == snapshot)
    }
    #expect(history.newest?.number == 5)
  }

  @Test func `knows by how much the file grew for each`() throws {
    var archive = try SeriesArchive()
    try archive.add(Self.repository(0).car())
    let first = try #require(archive.generations.last).committedLength
    try archive.add(Self.repository(1).car())
    let second = try #require(archive.generations.last).committedLength
    // Checkpoints on the way to the third.
    for number in 0..<3 {
      archive.add([Block(cid: .blob([UInt8(number)]), bytes: [UInt8(number)])])
      try archive.commit()
    }
    try archive.add(Self.repository(2).car())
    let third = try #require(archive.generations.last).committedLength
    let history = try SnapshotHistory(of: archive.reader())
    #expect(history.entries.map(\.bytesAdded) == [first, second - first, third - second])
    // One that waits for its snapshot changes nothing.
    try archive.commit()
    let after = try SnapshotHistory(of: archive.reader())
    #expect(after.entries.map(\.bytesAdded) == history.entries.map(\.bytesAdded))
  }

  @Test func `does not say whose the growth is where one generation brings several`() throws {
    var archive = try SeriesArchive()
    try archive.add(Self.repository(0).car(), commits: false)
    try archive.add(Self.repository(1).car(), commits: false)
    try archive.add(Self.repository(2).car())
    let history = try SnapshotHistory(of: archive.reader())
    #expect(history.entries.map(\.cid) == archive.snapshots.map(\.cid))
    #expect(history.entries.map(\.bytesAdded) == [nil, nil, nil])
    // What comes after them is known again.
    let length = try #require(archive.generations.last).committedLength
    try archive.add(Self.repository(3).car())
    let growth = try #require(archive.generations.last).committedLength - length
    let after = try SnapshotHistory(of: archive.reader())
    #expect(after.entries.map(\.bytesAdded) == [nil, nil, nil, growth])
  }

  @Test func `goes on behind a manifest that is damaged, and says which`() throws {
    let archive = try Self.series(5)
    for lost in 0..<5 {
      let reader = try archive.reader(archive.damaging(manifest: lost))
      let history = try SnapshotHistory(of: reader)
      var left = archive.snapshots.map(\.cid)
      let cid = left.remove(at: lost)
      #expect(history.entries.map(\.cid) == left)
      #expect(history.entries.map(\.number) == [1, 2, 3, 4])
      #expect(history.breaks.count == 1)
      let found = try #require(history.breaks.first)
      #expect(found.after == (lost < 4 ? archive.snapshots[lost + 1].cid : nil))
      guard case .damagedManifest(cid, _) = found.reason else {
        Issue.record("\(found)")
        continue
      }
    }
  }

  @Test func `ends where only a manifest that is lost leads on`() throws {
    var archive = try SeriesArchive()
    for number in 0..<3 { try archive.add(Self.repository(number).car(), commits: number == 2) }
    let reader = try archive.reader(archive.damaging(manifest: 1))
    let history = try SnapshotHistory(of: reader)
    #expect(history.entries.map(\.cid) == [archive.snapshots[2].cid])
    #expect(history.breaks.count == 1)
  }

  @Test func `tells what is wrong with what should be a manifest`() throws {
    var archive = try Self.series(2)
    let absent = CID(codec: .dagCBOR, hashing: [1].span)
    let strange = CID(
      codec: .dagCBOR,
      multihash: Multihash(
        function: HashFunction(rawValue: 0x1e), digest: [UInt8](repeating: 7, count: 32)))
    for (previous, error) in [
      (absent, .blockMissing(absent)), (strange, .notAManifest),
      (archive.snapshots[0].snapshot.commit, .notAManifest),
    ] as [(CID, SnapshotError)] {
      var broken = try Self.series(2)
      try broken.add(Self.repository(3).car()) { $0.previous = previous }
      let history = try SnapshotHistory(of: broken.reader())
      // The footers lead on to the others.
      #expect(history.entries.map(\.cid) == broken.snapshots.map(\.cid))
      #expect(history.breaks.map(\.reason) == [.unusableManifest(previous, error)])
      #expect(history.breaks.map(\.after) == [broken.snapshots[2].cid])
    }
    // What was passed by on purpose is passed by.
    try archive.add(Self.repository(3).car()) { $0.previous = nil }
    let history = try SnapshotHistory(of: archive.reader())
    #expect(history.entries.map(\.cid) == [archive.snapshots[2].cid])
    #expect(history.breaks == [])
  }

  @Test func `does not go round in circles`() throws {
    // With an unknown hash function, a block may name itself.
    let name = CID(
      codec: .dagCBOR,
      multihash: Multihash(
        function: HashFunction(rawValue: 0x1e), digest: [UInt8](repeating: 7, count: 32)))
    var archive = try Self.series(1)
    var circle = archive.snapshots[0].snapshot
    circle.previous = name
    archive.add([Block(cid: name, bytes: try circle.encode())])
    try archive.add(Self.repository(1).car()) { $0.previous = name }
    let history = try SnapshotHistory(of: archive.reader())
    #expect(history.entries.count == 2)
    #expect(history.breaks.map(\.reason) == [.unusableManifest(name, .notAManifest)])
  }

  @Test func `says that growth is not known where a footer is damaged`() throws {
    let archive = try Self.series(5)
    var bytes = try archive.bytes
    bytes[Int(archive.generations[1].footerOffset) + 40] ^= 0xff
    let history = try SnapshotHistory(of: archive.reader(bytes))
    #expect(history.entries.map(\.cid) == archive.snapshots.map(\.cid))
    let lengths = archive.generations.map(\.committedLength)
    // The third manifest may have been there before the third generation, for all that is known.
    #expect(history.entries.map(\.bytesAdded) == [nil, nil, nil, nil, lengths[4] - lengths[3]])
    guard case .damagedFooter? = history.breaks.first?.reason, history.breaks.count == 1 else {
      Issue.record("\(history.breaks)")
      return
    }
  }

  @Test func `offers all manifests where there is no footer, and vouches for none`() throws {
    var archive = try Self.series(3)
    // A record that looks like one, except for what it lacks.
    let fake = try DAGCBOREncoder.encode(
      .map(["carpack": .integer(1), "car": .map([:]), "commit": .link(.blob([1]))]))
    archive.add([Block(cid: CID(codec: .dagCBOR, hashing: fake.span), bytes: fake)])
    let reader = try archive.reader(archive.withoutFooters())
    #expect(reader.generation.number == 0)
    let history = try SnapshotHistory(of: reader)
    #expect(history.entries.allSatisfy { !$0.isVouched })
    #expect(history.entries.map(\.cid) == archive.snapshots.map(\.cid))
    #expect(history.entries.allSatisfy { $0.bytesAdded == nil })
    #expect(try ArchivedSnapshot.newest(in: reader).cid == archive.snapshots.last?.cid)
  }

  @Test func `of an archive without a snapshot is empty`() throws {
    let folder = try TemporaryFolder()
    let path = FilePath(folder.file("empty.car.zst"))
    var header: [UInt8] = []
    CARWriter.appendHeader(roots: [.blob([1])], to: &header)
    var writer = try ArchiveWriter.open(try FileStorage.create(path), carHeader: header)
    try writer.append(.blob([1]), [1].span)
    _ = try writer.commit(manifest: nil)
    let history = try SnapshotHistory(of: ArchiveReader(path: path))
    #expect(history.entries.isEmpty && history.breaks.isEmpty && history.newest == nil)
  }

  @Test func `stops where there are too many, and says so`() throws {
    let archive = try Self.series(5)
    let history = try SnapshotHistory(of: archive.reader(), limit: 3)
    #expect(history.entries.map(\.cid) == archive.snapshots.suffix(3).map(\.cid))
    #expect(history.breaks.map(\.reason) == [.tooMany])
    let lengths = archive.generations.map(\.committedLength)
    // What comes before the oldest of them is not known.
    #expect(
      history.entries.map(\.bytesAdded) == [nil, lengths[3] - lengths[2], lengths[4] - lengths[3]])
    #expect(try SnapshotHistory(of: archive.reader(), limit: 5).breaks == [])
    let unvouched = try SnapshotHistory(
      of: archive.reader(archive.withoutFooters()), limit: 3)
    #expect(unvouched.entries.map(\.cid) == archive.snapshots.suffix(3).map(\.cid))
    #expect(unvouched.breaks.map(\.reason) == [.tooMany])
  }

  @Test func `does not keep a date as long as somebody likes`() throws {
    var archive = try SeriesArchive()
    try archive.add(Self.repository(0).car(), at: String(repeating: "2", count: 100_000))
    let entry = try #require(try SnapshotHistory(of: archive.reader()).newest)
    #expect(entry.createdAt.count < 100)
    #expect(entry.moment == nil)
  }
}
