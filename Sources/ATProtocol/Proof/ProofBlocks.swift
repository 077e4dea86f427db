internal import IPLD

/// The blocks of a proof, each of which hashes to its CID.
struct ProofBlocks {
  let root: CID
  /// Where the bytes of each block lie.
  let ranges: [CID: Range<Int>]
  let duplicates: Int

  /// Reads a CAR with one root and checks all its blocks.
  init(_ car: Span<UInt8>) throws(RecordProofFault) {
    guard car.count <= RecordProof.maximumLength else { throw .tooLong }
    let header: CARHeader
    do {
      header = try CARHeader(car, limits: .streaming)
    } catch {
      throw .notACAR(error)
    }
    guard header.roots.count == 1 else { throw .notOneRoot(header.roots.count) }
    var ranges: [CID: Range<Int>] = [:]
    var duplicates = 0
    var cursor = CARCursor(header: header, payload: 0..<car.count, limits: .streaming)
    while let (body, cid) = try Self.next(&cursor, car) {
      guard cid.verify(car.extracting(body)) == .matches else { throw .wrongBlock(cid) }
      if ranges.updateValue(body, forKey: cid) != nil { duplicates += 1 }
    }
    root = header.roots[0]
    self.ranges = ranges
    self.duplicates = duplicates
  }

  private static func next(_ cursor: inout CARCursor, _ car: Span<UInt8>)
    throws(RecordProofFault) -> (Range<Int>, CID)?
  {
    do {
      return try cursor.next(in: car).map { ($0.0.bodyRange, $0.1) }
    } catch {
      throw .notACAR(error)
    }
  }

  /// Where the bytes of a block lie that has to be there.
  func range(_ cid: CID) throws(RecordProofFault) -> Range<Int> {
    guard let range = ranges[cid] else { throw .missingBlock(cid) }
    return range
  }

  /// The commit, which is the root.
  func commit(_ car: Span<UInt8>) throws(RecordProofFault) -> Commit {
    let range = try range(root)
    do throws(RepositoryError) {
      return try Commit(car.extracting(range))
    } catch {
      throw .notACommit(error)
    }
  }

  /// The path of the only record that the nodes lead to and that is there.
  func onlyPath(_ car: Span<UInt8>) throws(RecordProofFault) -> RecordPath {
    var open = [try commit(car).data]
    var seen = Set(open)
    var found: [UInt8]?
    while let cid = open.popLast() {
      guard let range = ranges[cid] else { continue }
      let node: MSTNode
      do {
        node = try MSTNode(car.extracting(range))
      } catch {
        throw .illegalNode(MSTProblem(kind: .malformedNode(error), node: cid, key: nil))
      }
      var key: [UInt8] = []
      for entry in node.entries {
        guard entry.prefixLength <= key.count, entry.suffix.count <= RecordPath.maximumLength else {
          throw .illegalNode(MSTProblem(kind: .prefixNotMaximal, node: cid, key: nil))
        }
        key.removeLast(key.count - entry.prefixLength)
        key.append(contentsOf: node.suffixes[entry.suffix])
        guard key.count <= RecordPath.maximumLength else {
          throw .illegalNode(MSTProblem(kind: .illegalKey, node: cid, key: key))
        }
        if ranges[entry.value] != nil {
          guard found == nil else { throw .pathUnknown }
          found = key
        }
      }
      for next in [node.left] + node.entries.map(\.right) {
        if let next, seen.insert(next).inserted { open.append(next) }
      }
    }
    guard let found else { throw .pathUnknown }
    do {
      return try RecordPath(String(decoding: found, as: UTF8.self))
    } catch {
      throw .pathUnknown
    }
  }
}
