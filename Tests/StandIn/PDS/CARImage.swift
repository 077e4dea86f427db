import ATProtocol
import IPLD

/// A CAR about to be sent: its root and its blocks, in order.
///
/// They are shared with the account, not copied.
struct CARImage {
  var roots: [CID]
  var blocks: [(cid: CID, bytes: [UInt8])]
  /// What comes after them.
  var foreign: ForeignBlocks?

  /// How long it will be, in bytes.
  var length: Int {
    blocks.reduce(CARHeader(roots: roots).length + (foreign?.length ?? 0)) { sum, block in
      let section = block.cid.bytes.count + block.bytes.count
      return sum + Varint.length(of: UInt64(section)) + section
    }
  }

  /// Hands out its bytes in pieces.
  func forEachPiece(_ body: (Span<UInt8>) throws -> Void) throws {
    var piece: [UInt8] = []
    CARWriter.appendHeader(roots: roots, to: &piece)
    func append(_ cid: CID, _ bytes: [UInt8]) throws {
      CARWriter.appendSection(cid, bytes.span, to: &piece)
      guard piece.count >= 64 << 10 else { return }
      try body(piece.span)
      piece.removeAll(keepingCapacity: true)
    }
    for block in blocks { try append(block.cid, block.bytes) }
    for number in 0..<(foreign?.count ?? 0) {
      guard let block = foreign?.block(number) else { break }
      try append(block.cid, block.bytes)
    }
    if !piece.isEmpty { try body(piece.span) }
  }

  /// The repository of an account, as a server with this behaviour gives it.
  ///
  /// - Parameter since: the revision that the client has.
  init(_ state: AccountState, since: TID?, _ behaviour: Behaviour) {
    guard let commit = state.commit, let data = state.data, let rev = state.rev else {
      roots = []
      blocks = []
      return
    }
    roots = [commit]
    let isWanted = { (cid: CID) -> Bool in
      guard let stored = state.blocks[cid] else { return false }
      switch (behaviour.since, since) {
      case (.exact, let since?): return stored.rev > since
      case (.inclusive, let since?): return stored.rev >= since
      default: return true
      }
    }
    var order = [commit] + Self.tree(data, state)
    if behaviour.sendsOldBlocks {
      order += state.blocks.filter { !$0.value.isCurrent }.map(\.key)
        .sorted { "\($0)" < "\($1)" }
    }
    order = order.filter(isWanted)
    if let since, since >= rev, behaviour.since == .exact, behaviour.nothingNew == .commitAlone {
      order = [commit]
    }
    switch behaviour.order {
    case .tree: break
    case .commitLast: order.reverse()
    case .newestFirst:
      let named = order.map { (cid: $0, text: "\($0)", rev: state.blocks[$0]!.rev) }
      order = named.sorted { ($0.rev, $0.text) > ($1.rev, $1.text) }.map(\.cid)
    }
    blocks = order.map { ($0, state.blocks[$0]!.bytes) }
    foreign = behaviour.foreignBlocks
  }

  /// A CAR of these blocks.
  init(roots: [CID], _ cids: [CID], of state: AccountState) {
    self.roots = roots
    blocks = cids.compactMap { cid in state.blocks[cid].map { (cid, $0.bytes) } }
  }

  /// The nodes of a tree and its records from the top, each once.
  private static func tree(_ root: CID, _ state: AccountState) -> [CID] {
    var order: [CID] = []
    var seen: Set<CID> = []
    // What is still to come, the next last: nodes to be opened, and records.
    var open: [(cid: CID, isNode: Bool)] = [(root, true)]
    while let (cid, isNode) = open.popLast() {
      if seen.insert(cid).inserted { order.append(cid) } else if !isNode { continue }
      guard isNode, let bytes = state.blocks[cid]?.bytes, let node = try? MSTNode(bytes.span)
      else { continue }
      var below: [(cid: CID, isNode: Bool)] = []
      if let left = node.left { below.append((left, true)) }
      for entry in node.entries {
        below.append((entry.value, false))
        if let right = entry.right { below.append((right, true)) }
      }
      open += below.reversed()
    }
    return order
  }
}
