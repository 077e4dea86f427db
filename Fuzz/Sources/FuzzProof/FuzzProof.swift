import ATProtocol
import FuzzSupport
import IPLD

/// Proofs of records: judged or refused, and what is proven is proven by the least proof that is
/// made of the same blocks, too.
///
/// The first byte of the input says what the rest is: a proof as it is; or a row of blocks, each
/// with two bytes in front that say its length, big-endian, the commit first. In a row a link leads
/// to the later block whose number its last byte says, so that hashes hold and a walk gets beyond
/// the first block.
enum FuzzProof: Fuzzer {
  private static let paths = [
    "app.bsky.feed.post/3jui7kd54zh2y", "app.bsky.actor.profile/self", "a.b.c/1", "z.z.z/zzz",
  ]
  /// What a link to a DAG-CBOR block begins with: tag 42, a byte string of 37 bytes, the multibase
  /// prefix, the CID up to its digest.
  private static let link: [UInt8] = [0xd8, 0x2a, 0x58, 0x25, 0x00, 0x01, 0x71, 0x12, 0x20]

  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    let rest = bytes.extracting(droppingFirst: 1)
    let car = bytes[0] % 2 == 0 ? rest.copy : proof(ofRow: rest.copy)
    judge(car)
  }

  private static func judge(_ car: [UInt8]) {
    do throws(RecordProofFault) {
      let found = try RecordProof(judging: car.span)
      check(found, car)
      let again = try RecordProof(judging: car.span, of: found.path)
      require(again == found, "a path that was found leads elsewhere")
    } catch {
      requireLegible("\(error)", limit: 2500)
    }
    for text in paths {
      guard let path = try? RecordPath(text) else { fatalError("a path is none") }
      do throws(RecordProofFault) {
        check(try RecordProof(judging: car.span, of: path), car)
      } catch {
        requireLegible("\(error)", limit: 2500)
      }
    }
  }

  /// The least proof of the same says the same, and needs each of its blocks.
  private static func check(_ proof: RecordProof, _ car: [UInt8]) {
    if case .record(let cid, let record) = proof.finding {
      require(cid.verify(record.span) == .matches, "a record is another")
    }
    let blocks = Dictionary(sections(of: car)) { first, _ in first }
    do {
      let least = try RecordProof.make(of: proof.path, commit: proof.commitCID) { blocks[$0] }
      let judged = try RecordProof(judging: least.span, of: proof.path)
      require(judged.finding == proof.finding, "the least proof says something else")
      require(judged.extraBlocks == 0 && judged.duplicateBlocks == 0, "the least proof is not")
      require(least.count <= car.count, "the least proof is longer")
    } catch {
      fatalError("no least proof: \(error)")
    }
  }

  /// The blocks of a CAR, as far as it can be read.
  private static func sections(of car: [UInt8]) -> [(CID, [UInt8])] {
    var found: [(CID, [UInt8])] = []
    guard let header = try? CARHeader(car.span) else { return found }
    var cursor = CARCursor(header: header, payload: 0..<car.count, limits: .streaming)
    while let (section, cid) = try? cursor.next(in: car.span) {
      found.append((cid, [UInt8](car[section.bodyRange])))
    }
    return found
  }

  /// The proof that a row of blocks makes.
  private static func proof(ofRow bytes: [UInt8]) -> [UInt8] {
    var blocks: [[UInt8]] = []
    var place = 0
    while place < bytes.count - 2, blocks.count < 64 {
      let length = Int(bytes[place]) << 8 | Int(bytes[place + 1])
      let end = min(place + 2 + length, bytes.count)
      blocks.append([UInt8](bytes[place + 2..<end]))
      place = end
    }
    var cids: [CID?] = blocks.map { _ in nil }
    for index in blocks.indices.reversed() {
      var start = 0
      while start + 41 <= blocks[index].count {
        guard blocks[index][start..<start + link.count].elementsEqual(link) else {
          start += 1
          continue
        }
        let target = index + 1 + Int(blocks[index][start + 40]) % 8
        if target < blocks.count {
          let block = blocks[target]
          blocks[index].replaceSubrange(
            start + 9..<start + 41, with: SHA256.digest(of: block.span).bytes)
        }
        start += 41
      }
      let block = blocks[index]
      cids[index] = CID(codec: .dagCBOR, hashing: block.span)
    }
    var car: [UInt8] = []
    guard let root = cids.first ?? nil else { return car }
    CARWriter.appendHeader(roots: [root], to: &car)
    for (cid, block) in zip(cids, blocks) {
      if let cid { CARWriter.appendSection(cid, block.span, to: &car) }
    }
    return car
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    let cars = try corpus?.files(".car", limit: 12 << 10) ?? []
    // A row is a CAR's blocks in their order: the commit, the nodes from the root down, the record.
    let rows = cars.map { car in
      sections(of: car).flatMap { _, block in
        [UInt8(block.count >> 8), UInt8(block.count & 0xff)] + block
      }
    }
    return cars.map { [0] + $0 } + rows.map { [1] + $0 } + [[0], [1]]
  }
}
