package import ATProtocol
package import IPLD

/// The source of a repository's blocks: a CAR in a file, a snapshot of an archive, or one laid over
/// the other.
///
/// Blocks have numbers. A walk asks for the numbers of all that a node links to at once, which
/// takes less time in a large table.
package protocol BlockSource: Sendable {
  /// How many bytes are at hand, which is a limit to what is scanned again for another key.
  var byteCount: Int { get }
  /// No block has this number or a higher one.
  var numberLimit: Int { get }
  /// The number of the block that a CID names; nil if it is not here.
  func number(of cid: CID) -> Int?
  /// Appends the number of each block that these name, or nil.
  func appendNumbers(of cids: [CommonCID], to numbers: inout [Int?])
  /// What is known of a block at a glance.
  func kind(_ number: Int) -> BlockKind
  /// How many bytes a block has, whether they were kept or not.
  func bodyLength(_ number: Int) -> UInt64
  /// Calls `use` with the bytes of a block; with none if they were not kept.
  func withBody<Value, Failure: Error>(
    _ number: Int, _ use: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value
}

/// What is known of a block at a glance.
package enum BlockKind: UInt8, Sendable {
  /// A record that keeps the rules and refers to no blob.
  case plainRecord
  /// Anything else whose bytes are at hand.
  case kept
  /// A blob, or another block that no repository consists of; its bytes are not at hand.
  case other
}

extension BlockSource {
  /// The bytes of a block; nil if they are not here.
  package func body(of cid: CID) -> [UInt8]? {
    guard let number = number(of: cid), kind(number) != .other else { return nil }
    return withBody(number) { $0.array }
  }

  /// How many bytes a block has; nil if it is not here.
  package func length(of cid: CID) -> UInt64? { number(of: cid).map(bodyLength) }

  /// The commit that a CID names, and the number of its block.
  package func commit(_ root: CID?) throws(RepositoryError) -> (commit: Commit, number: Int) {
    guard let root else { throw .noRoot }
    guard let number = number(of: root) else { throw .commitMissing(root) }
    return (try withBody(number) { body throws(RepositoryError) in try Commit(body) }, number)
  }

  /// The commit that a CID names, and the tree nodes and records that it leads to, in canonical
  /// order and each once: a node, then what it links to; each record after the entry that names it
  /// ([AT Protocol, Repository, "CAR File
  /// Serialization"](https://atproto.com/specs/repository#car-file-serialization)).
  ///
  /// What is not here is left out.
  package func blocksInOrderOfTree(from root: CID?) -> [Int] {
    guard let root, let first = number(of: root) else { return [] }
    var found = [first]
    // A block that is not a commit leads to nothing further.
    guard let commit = withBody(first, { try? Commit($0) }) else { return found }
    var seen = BlockSet(count: numberLimit)
    seen.insert(first)
    var fold = TreeFold(self, root: commit.data)
    while let step = fold.next() {
      switch step {
      case .node(let number), .record(_, let number?):
        guard !seen.contains(number) else { continue }
        seen.insert(number)
        found.append(number)
      case .record(_, nil), .missingNode, .subtree: break
      }
    }
    return found
  }

  /// The blocks that a commit reaches and that are not here, as far as the others tell.
  package func missing(from root: CID) -> [CID] {
    guard let number = number(of: root) else { return [root] }
    guard let commit = withBody(number, { try? Commit($0) }) else { return [] }
    var missing: Set<CID> = []
    var fold = TreeFold(self, root: commit.data)
    while let step = fold.next() {
      switch step {
      case .missingNode(let cid), .record(let cid, nil): missing.insert(cid)
      case .node, .record, .subtree: break
      }
    }
    return Array(missing)
  }
}

/// Blocks that are new, laid over those that were there before: of a block that both have, the new
/// one counts.
package struct Overlay<New: BlockSource, Old: BlockSource>: BlockSource {
  package let new: New
  package let old: Old

  package init(_ new: New, over old: Old) { (self.new, self.old) = (new, old) }

  package var byteCount: Int { new.byteCount + old.byteCount }

  package var numberLimit: Int { new.numberLimit + old.numberLimit }

  package func number(of cid: CID) -> Int? {
    new.number(of: cid) ?? old.number(of: cid).map { new.numberLimit + $0 }
  }

  package func appendNumbers(of cids: [CommonCID], to numbers: inout [Int?]) {
    let first = numbers.count
    new.appendNumbers(of: cids, to: &numbers)
    for (index, cid) in cids.enumerated() where numbers[first + index] == nil {
      numbers[first + index] = old.number(of: cid.cid).map { new.numberLimit + $0 }
    }
  }

  package func kind(_ number: Int) -> BlockKind {
    number < new.numberLimit ? new.kind(number) : old.kind(number - new.numberLimit)
  }

  package func bodyLength(_ number: Int) -> UInt64 {
    number < new.numberLimit ? new.bodyLength(number) : old.bodyLength(number - new.numberLimit)
  }

  package func withBody<Value, Failure: Error>(
    _ number: Int, _ use: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    number < new.numberLimit
      ? try new.withBody(number, use) : try old.withBody(number - new.numberLimit, use)
  }
}
