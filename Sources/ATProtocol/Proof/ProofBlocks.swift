internal import IPLD

/// The blocks of a proof, each of which hashes to its CID.
struct ProofBlocks {
  let root: CID
  /// Where the bytes of each block lie.
  private(set) var ranges: [CID: Range<Int>] = [:]
  private(set) var duplicates = 0

  /// Reads a CAR with one root and checks all its blocks.
  init(_ car: Span<UInt8>) throws(RecordProofFault) {
    guard car.count <= RecordProof.maximumLength else { throw .tooLong }
    var ranges: [CID: Range<Int>] = [:]
    var wrong: CID?
    let header: CARHeader
    do throws(CARError) {
      header = try CARHeader(car, limits: .streaming)
      var cursor = CARCursor(header: header, payload: 0..<car.count, limits: .streaming)
      while wrong == nil, header.roots.count == 1, let (section, cid) = try cursor.next(in: car) {
        if cid.verify(car.extracting(section.bodyRange)) != .matches { wrong = cid }
        if ranges.updateValue(section.bodyRange, forKey: cid) != nil { duplicates += 1 }
      }
    } catch {
      throw .notACAR(error)
    }
    guard header.roots.count == 1 else { throw .notOneRoot(header.roots.count) }
    if let wrong { throw .wrongBlock(wrong) }
    root = header.roots[0]
    self.ranges = ranges
  }

  /// Where the bytes of a required block lie.
  func range(_ cid: CID) throws(RecordProofFault) -> Range<Int> {
    guard let range = ranges[cid] else { throw .missingBlock(cid) }
    return range
  }

  /// The path of the only record that the nodes lead to and that is there.
  func onlyPath(below data: CID, _ car: Span<UInt8>) throws(RecordProofFault) -> RecordPath {
    var walker = MSTWalker(root: data)
    var found: [UInt8]?
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        if let range = ranges[cid] { walker.enter(car.extracting(range)) } else { walker.skip() }
      case .record(let cid) where ranges[cid] != nil:
        guard found == nil else { throw .pathUnknown }
        found = walker.key
      case .record: break
      }
    }
    if let problem = walker.problems.first { throw .illegalNode(problem) }
    guard let found, let path = try? RecordPath(String(decoding: found, as: UTF8.self)) else {
      throw .pathUnknown
    }
    return path
  }
}
