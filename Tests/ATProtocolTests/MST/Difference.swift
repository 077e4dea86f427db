import ATProtocol
import IPLD

/// A tree with its nodes.
typealias Tree = (root: CID, nodes: [CID: [UInt8]])

/// What the comparison of two trees gave out, and what it loaded to know it.
struct Difference {
  var created: [CID] = []
  var deleted: [CID] = []
  var records: [MSTDiff.RecordChange] = []
  var loaded: [CID] = []

  init(from old: Tree, to new: Tree) throws {
    try MSTDiff.compare(old: old.root, new: new.root) { cid, side in
      loaded.append(cid)
      return side == .old ? old.nodes[cid] : new.nodes[cid]
    } each: { change in
      switch change {
      case .createdNode(let cid): created.append(cid)
      case .deletedNode(let cid): deleted.append(cid)
      case .record(let record): records.append(record)
      }
    }
  }

  /// The nodes that were loaded though both trees have them.
  var loadedInVain: Set<CID> { Set(loaded).subtracting(created).subtracting(deleted) }
}

/// What a comparison has to come to, found by walking both trees from end to end.
struct NaiveDifference {
  let created: Set<CID>
  let deleted: Set<CID>
  let records: [MSTDiff.RecordChange]

  init(from old: Tree, to new: Tree) {
    let before = Walk(from: old.root, in: old.nodes)
    let after = Walk(from: new.root, in: new.nodes)
    created = after.nodes.subtracting(before.nodes)
    deleted = before.nodes.subtracting(after.nodes)
    let values = Dictionary(uniqueKeysWithValues: before.leaves.map { ($0.key, $0.value) })
    let newValues = Dictionary(uniqueKeysWithValues: after.leaves.map { ($0.key, $0.value) })
    let keys = Set(values.keys).union(newValues.keys).filter { values[$0] != newValues[$0] }
    records = keys.sorted { $0.lexicographicallyPrecedes($1) }.map {
      MSTDiff.RecordChange(key: $0, old: values[$0], new: newValues[$0])
    }
  }
}
