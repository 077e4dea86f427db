import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

@Suite struct `A record proof` {
  /// A made-up repository: its blocks, and the CID of its commit.
  private struct Made {
    var blocks: [CID: [UInt8]] = [:]
    let root: CID
    let paths: [String]

    init(_ repository: TestRepository) throws {
      let all = try repository.blocks()
      root = all[0].cid
      for block in all { blocks[block.cid] = block.bytes }
      paths = repository.records.keys.map { String(decoding: $0, as: UTF8.self) }.sorted()
    }

    func proof(of path: String) throws -> [UInt8] {
      try RecordProof.make(of: RecordPath(path), commit: root) { blocks[$0] }
    }
  }

  private func judge(_ car: [UInt8], of path: String) throws -> RecordProof {
    let path = try RecordPath(path)
    return try RecordProof(judging: car.span, of: path)
  }

  private func sections(_ car: [UInt8]) throws -> [Block] {
    let header = try CARHeader(car.span)
    var cursor = CARCursor(header: header, payload: 0..<car.count)
    var blocks: [Block] = []
    while let (section, cid) = try cursor.next(in: car.span) {
      blocks.append(Block(cid: cid, bytes: Array(car[section.bodyRange])))
    }
    return blocks
  }

  private func car(_ roots: [CID], _ blocks: [Block]) -> [UInt8] {
    var bytes: [UInt8] = []
    CARWriter.appendHeader(roots: roots, to: &bytes)
    for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes) }
    return bytes
  }

  @Test func `of 1,000 records and 1,000 absent paths holds, and fails once tampered with`() throws
  {
    var random = SeededGenerator()
    let made = try Made(TestRepository(posts: 3000))
    for number in 0..<2000 {
      let isAbsent = number % 2 == 1
      let path =
        isAbsent
        ? "app.bsky.feed.\(["post", "like", "aaa", "zzz"][number / 2 % 4])/3k\(Int.random(in: 0..<2_000_000, using: &random))x"
        : made.paths[Int.random(in: made.paths.indices, using: &random)]
      let proof = try made.proof(of: path)
      let verdict = try judge(proof, of: path)
      #expect(verdict.commitCID == made.root)
      #expect(verdict.did.text == "did:plc:ewvi7nxzyoun6zhxrhs64oiz")
      #expect(verdict.rev?.text == "3lscuqc52or2x")
      #expect(verdict.extraBlocks == 0)
      #expect(verdict.duplicateBlocks == 0)
      if case .record(let cid, let bytes) = verdict.finding {
        #expect(!isAbsent)
        #expect(made.blocks[cid] == bytes)
        #expect(try RecordProof(judging: proof.span).path.text == path)
      } else {
        #expect(isAbsent)
        #expect(throws: RecordProofFault.pathUnknown) { try RecordProof(judging: proof.span) }
      }

      // One bit anywhere, "\(random)".
      var flipped = proof
      let place = Int.random(in: flipped.indices, using: &random)
      flipped[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      #expect(throws: RecordProofFault.self, "byte \(place), \(random)") {
        try judge(flipped, of: path)
      }
      // Cut short.
      let short = Array(proof.prefix(Int.random(in: proof.indices, using: &random)))
      #expect(throws: RecordProofFault.self, "\(random)") { try judge(short, of: path) }
      // One block left out, or replaced by another that hashes to its CID.
      var blocks = try sections(proof)
      let victim = Int.random(in: blocks.indices, using: &random)
      let removed = blocks.remove(at: victim)
      #expect(throws: RecordProofFault.missingBlock(removed.cid), "\(random)") {
        try judge(car([made.root], blocks), of: path)
      }
      var bytes = removed.bytes
      bytes[Int.random(in: bytes.indices, using: &random)] ^= 0x10
      blocks.append(Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes))
      #expect(throws: RecordProofFault.missingBlock(removed.cid), "\(random)") {
        try judge(car([made.root], blocks), of: path)
      }
      // The proof of one path proves nothing of another.
      let other = made.paths[Int.random(in: made.paths.indices, using: &random)]
      if other != path {
        do {
          // Paths may share all their nodes, but never the record.
          let verdict = try judge(proof, of: other)
          Issue.record("\(verdict.path) by the proof of \(path), \(random)")
        } catch RecordProofFault.missingBlock {}
      }
    }
  }

  @Test func `of an empty repository says that nothing is there`() throws {
    let made = try Made(TestRepository())
    #expect(try judge(made.proof(of: "a.b.c/d"), of: "a.b.c/d").finding == .absent)
  }

  @Test func `may hold more than it needs, which is counted`() throws {
    let made = try Made(TestRepository(posts: 100))
    let path = made.paths[50]
    let blocks = try sections(made.proof(of: path))
    let stray = Array("stray".utf8)
    let strays = [Block(cid: CID(codec: .raw, hashing: stray.span), bytes: stray)]
    let verdict = try judge(
      car([made.root], strays + blocks.reversed() + blocks[..<2] + strays), of: path)
    #expect(verdict.extraBlocks == 1)
    #expect(verdict.duplicateBlocks == 3)
    #expect(throws: RecordProofFault.notOneRoot(2)) {
      try judge(car([made.root, made.root], blocks), of: path)
    }
    #expect(throws: RecordProofFault.notOneRoot(0)) { try judge(car([], blocks), of: path) }
    let long = [UInt8](repeating: 0, count: RecordProof.maximumLength + 1)
    #expect(throws: RecordProofFault.tooLong) { try judge(long, of: path) }
    let root = blocks[1].cid
    #expect(throws: RecordProofFault.self) { try judge(car([root], blocks), of: path) }
  }

  /// A tree whose signer lies about what is in it: each node hashes, the order does not hold.
  @Test func `does not take a tree that hides a key`() throws {
    func node(_ keys: [(Int, String)], left: CID? = nil) throws -> Block {
      let entries = keys.map { shared, rest in
        IPLDValue.map([
          "p": .integer(Int128(shared)), "k": .bytes(Array(rest.utf8)), "v": .link(.example(1)),
          "t": .null,
        ])
      }
      let value = IPLDValue.map(["e": .array(entries), "l": left.map { .link($0) } ?? .null])
      let bytes = try DAGCBOREncoder.encode(value)
      return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
    }
    func fault(_ nodes: [Block], of path: String) throws -> MSTProblem.Kind? {
      let commit = try DAGCBOREncoder.encode(.map(exampleCommit(data: nodes[0].cid)))
      let head = Block(cid: CID(codec: .dagCBOR, hashing: commit.span), bytes: commit)
      do {
        _ = try judge(car([head.cid], [head] + nodes), of: path)
        return nil
      } catch RecordProofFault.illegalNode(let problem) {
        return problem.kind
      }
    }
    // Of layer 0, except for the last.
    let keys = (0..<40).map { "a.b.c/\(10 + $0)" }
    func layer(_ key: String) -> Int { MSTLayer.layer(of: Array(key.utf8).span) }
    let low = keys.filter { layer($0) == 0 }
    let high = try #require(keys.first { layer($0) == 1 })
    #expect(try fault([node([(0, low[0])])], of: "x.y.z/1") == nil)
    #expect(try fault([node([(0, low[5]), (0, low[0])])], of: "x.y.z/1") == .prefixNotMaximal)
    #expect(try fault([node([(0, low[0]), (7, "")])], of: "x.y.z/1") != nil)
    #expect(try fault([node([(0, "a.b.c")])], of: "x.y.z/1") == .illegalKey)
    #expect(try fault([node([], left: .example(2))], of: "x.y.z/1") == .untrimmedTop)
    let leaf = try node([])
    #expect(try fault([node([(0, high)], left: leaf.cid), leaf], of: "a.a.a/1") == .emptyLeaf)
    let wrong = try node([(0, low.last ?? "")])
    #expect(
      try fault([node([(0, high)], left: wrong.cid), wrong], of: "a.a.a/1") == .keysNotAscending)
    let skipped = try node([(0, low[0])], left: wrong.cid)
    #expect(try fault([skipped, wrong], of: "a.a.a/1") == .wrongLayer)
  }

  @Test func `is not made of blocks that are missing or changed`() throws {
    var made = try Made(TestRepository(posts: 10))
    let path = made.paths[3]
    let blocks = try sections(made.proof(of: path))
    for block in blocks {
      made.blocks[block.cid] = [1]
      #expect(throws: RecordProofFault.wrongBlock(block.cid)) { try made.proof(of: path) }
      made.blocks[block.cid] = nil
      #expect(throws: RecordProofFault.missingBlock(block.cid)) { try made.proof(of: path) }
      made.blocks[block.cid] = block.bytes
    }
  }

  @Test(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
  func `of a real server is judged, and made again of the same blocks`() throws {
    let bytes = try Corpus.bytes("repos/partial/record-proof-3kd4eokkt272u.car")
    let proof = try RecordProof(judging: bytes.span)
    #expect(proof.path.recordKey == "3kd4eokkt272u")
    #expect(proof.did.text == "did:plc:mmftdzyl74ymn2hhzoahtjcw")
    #expect(proof.rev?.text == "3kd4eokluap2u")
    #expect(proof.extraBlocks == 0)
    let blocks = Dictionary(
      uniqueKeysWithValues: try sections(bytes).map { ($0.cid, $0.bytes) })
    let made = try RecordProof.make(of: proof.path, commit: proof.commitCID) { blocks[$0] }
    #expect(Set(try sections(made).map(\.cid)) == Set(blocks.keys))
    #expect(made.count == bytes.count)
    let again = try judge(made, of: proof.path.text)
    #expect(again.finding == proof.finding)
  }

  private struct Fixture: Decodable {
    let leafValue: String
    let keys: [String]
    let adds: [String]
    let dels: [String]
    let rootAfterCommit: String
    let blocksInProof: [String]
  }

  @Test(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
  func `needs no node that the proofs of commits lack`() throws {
    let fixtures = try Corpus.json(
      "atproto-interop-tests/firehose/commit-proof-fixtures.json", as: [Fixture].self)
    #expect(fixtures.count >= 6)
    for fixture in fixtures {
      let value = try CID(fixture.leafValue)
      var keys = Set(fixture.keys)
      keys.formUnion(fixture.adds)
      keys.subtract(fixture.dels)
      var nodes: [CID: [UInt8]] = [:]
      var builder = MSTBuilder()
      for key in keys.sorted() {
        builder.append(key: Array(key.utf8), value: value) { nodes[$0.cid] = $0.bytes }
      }
      let root = builder.finish { nodes[$0.cid] = $0.bytes }
      #expect("\(root)" == fixture.rootAfterCommit)
      let allowed = Set(fixture.blocksInProof)
      for key in fixture.adds + fixture.dels {
        var descent = MSTDescent(root: root, from: Array(key.utf8), isJudging: true)
        let next = try descent.next { cid in
          #expect(allowed.contains("\(cid)"))
          return nodes[cid]
        }
        let isThere = next?.key == Array(key.utf8)
        #expect((isThere ? fixture.adds : fixture.dels).contains(key))
        if isThere { #expect(next?.cid == value) }
      }
    }
  }
}
