import ATProtocol
import Archive
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `A repository that is laid out` {
  @Test func `has records in pages, collections and proofs`() throws {
    var repository = try TestRepository(posts: 250)
    try repository.add("app.bsky.actor.profile/self", ["displayName": .string("A")])
    try repository.add("z.y.x/1", ["n": .integer(1)])
    try repository.add("zz.post/1", ["n": .integer(2)])
    let laidOut = try LaidOutRepository(of: Packed(car: repository.car()).snapshot)
    #expect(
      try laidOut.collections() == [
        "app.bsky.actor.profile", "app.bsky.feed.post", "z.y.x", "zz.post",
      ])
    let keys = (0..<250).map { "3k\(1_000_000 + $0)" }
    var found: [String] = []
    while true {
      let page = try laidOut.records(
        in: "app.bsky.feed.post", after: found.last, limit: 33, .descending)
      found += page.map(\.recordKey)
      if page.count < 33 { break }
    }
    #expect(found == keys.reversed())
    let some = try laidOut.records(
      in: "app.bsky.feed.post", after: "3k1000240", limit: 100, .ascending)
    #expect(some.map(\.recordKey) == Array(keys[241...]))
    #expect(try laidOut.records(in: "app.bsky.feed", limit: 9, .descending).isEmpty)
    let record = try #require(try laidOut.record("app.bsky.actor.profile/self"))
    #expect(record.cid == repository.cid(of: "app.bsky.actor.profile/self"))
    #expect(try laidOut.record("app.bsky.actor.profile/other") == nil)
    var count = 0
    try laidOut.forEachRecord { path, cid, bytes in
      count += 1
      #expect(repository.cid(of: path) == cid && bytes != nil)
    }
    #expect(count == 253)
    for (path, isThere) in [("z.y.x/1", true), ("z.y.x/2", false), ("zz.post/1", true)] {
      let path = try RecordPath(path)
      let proof = try laidOut.proof(of: path)
      let judged = try RecordProof(judging: proof.span, of: path)
      #expect((judged.finding != .absent) == isThere)
    }
  }

  @Test(arguments: [1, 5000]) func `names all its collections, however many there are`(
    _ count: Int
  ) throws {
    var repository = try TestRepository(posts: 500)
    var expected = ["app.bsky.feed.post"]
    for number in 0..<count {
      let name = "com.example.c\(10_000 + number)"
      expected.append(name)
      // Of some there are many records.
      for record in 0..<(number % 1000 == 0 ? 200 : 1) {
        try repository.add("\(name)/\(record)", ["n": .integer(Int128(number))])
      }
    }
    try repository.add("com.example.c10000-a.b/1", ["n": .integer(1)])
    expected.append("com.example.c10000-a.b")
    let laidOut = try LaidOutRepository(of: Packed(car: repository.car()).snapshot)
    #expect(try Set(laidOut.collections()) == Set(expected))
    #expect(try laidOut.collections().count == expected.count)
  }

  @Test func `tells the blocks that another has not`() throws {
    var repository = try TestRepository(posts: 100)
    let old = try LaidOutRepository(of: Packed(car: repository.car()).snapshot)
    let before = Set(try repository.blocks().map(\.cid))
    try repository.advance()
    try repository.add("app.bsky.feed.post/3k1000050", ["text": .string("another")])
    try repository.add("app.bsky.feed.post/3k2000000", ["text": .string("new")])
    let new = try LaidOutRepository(of: Packed(car: repository.car()).snapshot)
    let wanted = try repository.blocks().map(\.cid)
    let found = new.blocks(notIn: old)
    #expect(found.first == wanted[0])
    #expect(Set(found) == Set(wanted).subtracting(before) && found.count == Set(found).count)
    #expect(new.blocks(notIn: new).isEmpty)
  }

  @Test func `knows whose blobs are whose`() throws {
    var repository = TestRepository()
    let (held, missing, extra) = (
      [UInt8](repeating: 1, count: 99), CID.blob([2]), [UInt8](repeating: 3, count: 99)
    )
    let (heldCID, extraCID) = (
      CID(codec: .raw, hashing: held.span), CID(codec: .raw, hashing: extra.span)
    )
    try repository.add("app.bsky.feed.post/1", blob: heldCID)
    try repository.add("app.bsky.feed.post/2", blob: missing)
    let packed = try Packed(
      car: repository.car(), blobs: ["a": held, "b": extra], extras: true)
    let laidOut = try LaidOutRepository(of: packed.snapshot)
    #expect(laidOut.owns(heldCID) && laidOut.owns(missing) && laidOut.owns(extraCID))
    #expect(!laidOut.owns(.blob([9])))
    #expect(Set(try laidOut.heldBlobs()) == [heldCID, extraCID])
    #expect(laidOut.block(heldCID) == nil, "a blob is no block of the repository")
  }

  @Test func `says what is wrong with a damaged one, and gives what is left`() throws {
    var repository = try TestRepository(posts: 50)
    repository.omitted = [try #require(repository.cid(of: "app.bsky.feed.post/3k1000007"))]
    let laidOut = try LaidOutRepository(of: Packed(car: repository.car()).snapshot)
    #expect(throws: SnapshotError.self) { try laidOut.record("app.bsky.feed.post/3k1000007") }
    #expect(try laidOut.record("app.bsky.feed.post/3k1000008") != nil)
    var lost: [String] = []
    try laidOut.forEachRecord { path, _, bytes in if bytes == nil { lost.append(path) } }
    #expect(lost == ["app.bsky.feed.post/3k1000007"])
  }
}
