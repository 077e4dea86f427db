internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD

/// The beginnings of the keys of a snapshot's tree, found without walking all of it.
package struct TreeKeys {
  /// How many paths are returned at a time.
  ///
  /// Where more begin alike, what they continue with is given first.
  private static let maximumCount = 300

  private let reader: ArchiveReader
  private let root: CID
  private var nodes: [CID: [UInt8]] = [:]

  /// The keys of a snapshot.
  package init(_ snapshot: ArchivedSnapshot) throws {
    (reader, root) = (snapshot.reader, try snapshot.treeRoot)
  }

  /// What may follow a beginning: whole collections with a slash, or paths in one.
  package mutating func next(after typed: String) throws -> [String] {
    guard typed.utf8.contains(UInt8(ascii: "/")) else {
      return try groups(Array(typed.utf8)) { key in
        key.firstIndex(of: UInt8(ascii: "/")).map { $0 + 1 }
      }
    }
    var beginning = Array(typed.utf8)
    let all = try groups(beginning) { $0.count }
    if all.count < Self.maximumCount { return all }
    while true {
      let length = beginning.count + 1
      let found = try groups(beginning) { min($0.count, length) }
      guard found.count == 1, let only = found.first, only.utf8.count == length else {
        return found
      }
      beginning = Array(only.utf8)
    }
  }

  /// The different beginnings of the keys that begin so, each as long as `length` says.
  private mutating func groups(
    _ beginning: [UInt8], length: ([UInt8]) -> Int?
  ) throws -> [String] {
    var found: [String] = []
    var lower = beginning
    while found.count < Self.maximumCount, let key = try first(from: lower),
      key.starts(with: beginning)
    {
      let group = Array(key.prefix(length(key) ?? key.count))
      found.append(String(decoding: group, as: UTF8.self))
      // Nothing that begins with the group is after this; keys are ASCII. Of a whole key, the next
      // may begin with it.
      lower = group + [group.count == key.count ? 0 : 0xff]
    }
    return found
  }

  /// The first key that is not before `lower`.
  private mutating func first(from lower: [UInt8]) throws -> [UInt8]? {
    var descent = MSTDescent(root: root, from: lower)
    return try descent.next { cid in
      if let known = nodes[cid] { return known }
      let node = try reader.body(of: cid)
      // Enough for every path to this many keys, and bounded whatever the tree is.
      if nodes.count < 4096 { nodes[cid] = node }
      return node
    }?.key
  }
}
