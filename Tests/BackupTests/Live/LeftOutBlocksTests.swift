import ATProtocol
import Archive
import IPLD
internal import Live
import Repository
import StandIn
import SystemPackage
import TestSupport
import Testing
internal import Verification

@testable import Files
@testable import Snapshots

@Suite(.timeLimit(.minutes(5))) struct `Blocks that are not part of a repository` {
  private static let file = "a.car.zst"

  private func scene(_ foreign: ForeignBlocks?, posts: Int = 30) throws -> (
    AccountScene, StandInAccount
  ) {
    let account = try StandInAccount("many", posts: posts)
    var behaviour = Behaviour()
    behaviour.foreignBlocks = foreign
    return (try AccountScene([account], behaviour), account)
  }

  private func cids(_ car: [UInt8]) throws -> [CID] {
    var cursor = CARCursor(header: try CARHeader(car.span), payload: 0..<car.count)
    var cids: [CID] = []
    while let (_, cid) = try cursor.next(in: car.span) { cids.append(cid) }
    return cids
  }

  @Test(arguments: [
    ForeignBlocks(count: 20_000, size: 0, isVerifiable: false),
    ForeignBlocks(count: 1100, size: 1000, isVerifiable: true),
    ForeignBlocks(count: 2, size: 600_000, isVerifiable: false),
  ])
  func `are left out if they outweigh it, and counted`(foreign: ForeignBlocks) async throws {
    let (scene, account) = try scene(foreign)
    let report = try await scene.backUp(account, into: Self.file)
    #expect(report.outcome == .complete)
    let leftOut = try #require(report.snapshot.fetched?.leftOut)
    #expect(leftOut.blocks == foreign.count)
    #expect(report.generation.committedLength < 100_000)
    #expect(report.warnings.count { $0.contains("not part of the repository") } == 1)
    // What the account has is here, in canonical order.
    let plain = account.car()
    #expect(leftOut.bytes == account.car(scene.server.behaviour).count - plain.count)
    for exporting in [false, true] {
      let restored = try RestoredRepository(scene.snapshot(report.path), exporting: exporting)
      #expect(restored.isExact)
      #expect(restored.withBytes { $0.array } == plain)
    }
    #expect(report.snapshot.counts.blocks == Set(try cids(plain)).count)
    #expect(try scene.verdict(report.path) == .intact)
    // Nothing has changed, and that is what the next backup says.
    #expect(try await scene.backUp(account, into: Self.file).outcome == .upToDate)
  }

  @Test(arguments: [
    ForeignBlocks(count: 99, size: 200, isVerifiable: true),
    ForeignBlocks(count: 99, size: 0, isVerifiable: false),
  ])
  func `are kept if they are few, so that the CAR comes back bit for bit`(foreign: ForeignBlocks)
    async throws
  {
    let (scene, account) = try scene(foreign)
    let report = try await scene.backUp(account, into: Self.file)
    #expect(report.snapshot.fetched?.leftOut == nil)
    #expect(report.warnings == [])
    let restored = try RestoredRepository(scene.snapshot(report.path))
    #expect(restored.withBytes { $0.array } == account.car(scene.server.behaviour))
  }

  @Test func `do not get into the archive with changes either`() async throws {
    let (scene, account) = try scene(nil)
    try await scene.backUp(account, into: Self.file)
    let rev = account.rev
    try account.commit([account.post("3zzzzzzzzzzzz", "one more")])
    scene.server.behaviour.foreignBlocks = ForeignBlocks(
      count: 30_000, size: 20, isVerifiable: true)
    let report = try await scene.backUp(account, into: Self.file)
    #expect(report.snapshot.fetched?.since == rev)
    #expect(report.snapshot.fetched?.leftOut?.blocks == 30_000)
    #expect(report.bytesAdded < 20_000)
    // A further change is added to what is there, and says nothing of blocks that did not come with
    // it.
    scene.server.behaviour.foreignBlocks = nil
    try account.commit([account.post("3zzzzzzzzzzzy", "another")])
    let next = try await scene.backUp(account, into: Self.file)
    #expect(next.snapshot.fetched?.since != nil && next.snapshot.fetched?.leftOut == nil)
    let restored = try RestoredRepository(scene.snapshot(next.path), exporting: true)
    #expect(restored.withBytes { $0.array } == account.car())
    #expect(try scene.verdict(next.path) == .intact)
  }

  @Test func `do not hide that blocks of the repository are missing`() async throws {
    let (scene, account) = try scene(ForeignBlocks(count: 30_000, size: 20, isVerifiable: true))
    scene.server.play(FaultRule(.lacksBlocks, on: "com.atproto.sync.getRepo"))
    await #expect(throws: CutShort.self) { try await scene.backUp(account, into: Self.file) }
  }

  // MARK: Finding what is part of it

  private func inspected(_ car: [UInt8]) throws -> (CARFile, RepositoryInspection) {
    let file = try CARFile(MappedFile(copying: car))
    return (file, RepositoryInspection(of: file))
  }

  @Test func `are none of those that the commit leads to, which are found in canonical order`()
    throws
  {
    var repository = try TestRepository(posts: 200)
    try repository.add("app.test.same/a", ["$type": .string("app.test.same")])
    try repository.add("app.test.same/b", ["$type": .string("app.test.same")])
    repository.strays = (0..<50).map { number in
      let bytes = [UInt8](repeating: UInt8(number), count: number)
      return Block(cid: .blob(bytes), bytes: bytes)
    }
    let car = try repository.car()
    let (file, found) = try inspected(car)
    #expect(found.isComplete)
    let expected = try canonicalCAR(MappedFile(copying: car)).withBytes { $0.array }
    let inOrderOfTree = try CheckedRepository(inOrderOfTree: file, found, archive: nil)
    #expect(sections(inOrderOfTree) == (try cids(expected)))
    #expect(inOrderOfTree.sha256 == SHA256.digest(of: expected.span))
    #expect(inOrderOfTree.byteCount == expected.count)
    let strays = Set(repository.strays.map(\.cid))
    let reached = file.inOrder(found.reachedWithBlobs(in: file)).map { number in
      file.withSection(at: file.start(of: number)) { CARSection.cid(at: $1.start, in: $0) }
    }
    #expect(reached == (try cids(car)).filter { !strays.contains($0) })
  }

  @Test func `are not the blobs that records refer to and the CAR brings along`() throws {
    let blob = Block(cid: .blob([1, 2, 3]), bytes: [1, 2, 3])
    var repository = try TestRepository(posts: 5)
    try repository.add("app.bsky.feed.post/image", blob: blob.cid)
    repository.strays = [blob, Block(cid: .blob([4]), bytes: [4])]
    let (file, found) = try inspected(repository.car())
    let inOrderOfTree = try CheckedRepository(inOrderOfTree: file, found, archive: nil)
    #expect(sections(inOrderOfTree).last == blob.cid)
    #expect(inOrderOfTree.newCount == (try repository.blocks().count) - 1)
    #expect(inOrderOfTree.lengthOfBlock(blob.cid) == 3)
    #expect(inOrderOfTree.lengthOfBlock(.blob([4])) == nil)
  }

  @Test func `are all there is where the commit is none or its blocks are missing`() throws {
    var repository = try TestRepository(posts: 60)
    repository.omitted = [try #require(repository.cid(of: "app.bsky.feed.post/3k1000007"))]
    #expect(try !inspected(repository.car()).1.isComplete)
    let stray = Block(cid: CID(codec: .dagCBOR, hashing: [0xa0].span), bytes: [0xa0])
    var car = CARHeader(roots: [stray.cid]).bytes
    func expectNothing(_ car: [UInt8]) throws {
      let (_, found) = try inspected(car)
      #expect(found.reached.count == 0 && !found.isComplete)
    }
    try expectNothing(car)
    CARWriter.appendSection(stray.cid, stray.bytes.span, to: &car)
    try expectNothing(car)
    try expectNothing(CARHeader(roots: []).bytes)
    #expect(try inspected(Array(repository.car().dropLast())).1.carError != nil)
  }

  /// The CIDs of the blocks that a repository takes from its file.
  private func sections(_ repository: CheckedRepository) -> [CID] {
    (0..<repository.newCount).compactMap { index in
      repository.file?.withSection(at: repository.start(index)) {
        CARSection.cid(at: $1.start, in: $0)
      }
    }
  }
}
