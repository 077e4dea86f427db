import ATProtocol
import ArgumentParser
import IPLD

/// In which order a repository's blocks stand in its CAR.
enum BlockOrder: String, ExpressibleByArgument, CaseIterable {
  /// As the reference server sends them: the newest revision first, and within one by CID, the
  /// highest first.
  case server
  /// The commit, then the tree in pre-order, each record behind its entry.
  case tree
}

/// Where a block of the finished repository lies, and when it was written.
struct PlacedBlock {
  let digest: SHA256Digest
  /// Where its bytes begin; its CID and the section's length lie before them.
  let bodyOffset: Int
  let bodyLength: Int32
  /// The number of the revision that wrote it.
  let revision: UInt32

  /// Where its bytes lie.
  var body: Range<Int> { bodyOffset..<bodyOffset + Int(bodyLength) }

  /// Where its section lies, length prefix and CID included.
  var section: Range<Int> {
    let length = Int(bodyLength) + 36
    return body.upperBound - length - Varint.length(of: UInt64(length))..<body.upperBound
  }

  /// The order of the reference server.
  static func precedes(_ left: PlacedBlock, _ right: PlacedBlock) -> Bool {
    left.revision == right.revision ? left.digest > right.digest : left.revision > right.revision
  }
}

/// Finds out which revision wrote each node of a tree, given that a revision writes every node
/// above what it changes.
///
/// Nodes arrive children first, and only what no node has linked to yet is held.
struct RevisionTracker {
  private var unlinked: [CID: UInt32] = [:]

  /// Takes note of a record.
  mutating func wrote(_ record: CID, in revision: UInt32) { unlinked[record] = revision }

  /// Takes note of a node; answers its revision, the newest of what lies below it.
  mutating func revision(of node: Block) throws -> UInt32 {
    let content = try MSTNode(node.bytes.span)
    var newest = content.left.flatMap { unlinked.removeValue(forKey: $0) } ?? 0
    for entry in content.entries {
      newest = max(newest, unlinked.removeValue(forKey: entry.value) ?? 0)
      newest = max(newest, entry.right.flatMap { unlinked.removeValue(forKey: $0) } ?? 0)
    }
    unlinked[node.cid] = newest
    return newest
  }
}
