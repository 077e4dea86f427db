import ATProtocol
import FuzzSupport
import IPLD

/// Tree nodes: what is one is DAG-CBOR and encodes to the same bytes, and no nodes lead a walk
/// astray.
///
/// The input is a row of nodes, each with two bytes in front that say its length, big-endian. A CID
/// names the node whose number its last byte says.
enum FuzzMSTNode: Fuzzer {
  static func run(_ bytes: Span<UInt8>) {
    check(bytes)
    let nodes = split(bytes)
    guard !nodes.isEmpty else { return }
    for node in nodes {
      check(bytes.extracting(node))
    }
    walk(bytes, nodes)
  }

  private static func split(_ bytes: Span<UInt8>) -> [Range<Int>] {
    var nodes: [Range<Int>] = []
    var place = 0
    while place < bytes.count - 2, nodes.count < 256 {
      let length = Int(bytes[place]) << 8 | Int(bytes[place + 1])
      let end = min(place + 2 + length, bytes.count)
      nodes.append(place + 2..<end)
      place = end
    }
    return nodes
  }

  private static func check(_ bytes: Span<UInt8>) {
    guard let node = try? MSTNode(bytes) else { return }
    do throws(DAGCBORError) {
      let value = try DAGCBORDecoder.decode(bytes, profile: .atproto)
      require(
        value["e"]?.array?.count == node.entries.count, "a node has another number of entries")
      require(value["l"]?.link == node.left, "a node has another left subtree")
      let encoded = try DAGCBOREncoder.encode(value)
      require(encoded == bytes.copy, "a node changes")
    } catch {
      fatalError("a node that is no DAG-CBOR: \(error)")
    }
  }

  private static func walk(_ bytes: Span<UInt8>, _ nodes: [Range<Int>]) {
    let root = CID(codec: .dagCBOR, hashing: bytes)
    var walker = MSTWalker(root: root)
    var last: [UInt8] = []
    var isFirst = true
    var entered = 0
    var seen: Set<CID> = []
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        entered += 1
        // Two times are let through, so that the walker's own guards come into play.
        if !seen.insert(cid).inserted, entered % 3 == 0 {
          walker.skipRepeated()
          continue
        }
        let number = cid == root ? 0 : Int(cid.bytes.last ?? 0) % (nodes.count + 1)
        if number == nodes.count {
          walker.skip()
        } else {
          walker.enter(bytes.extracting(nodes[number]))
        }
      case .record:
        require(isFirst || last.lexicographicallyPrecedes(walker.key), "keys do not ascend")
        require(walker.key.count <= MSTWalker.maximumKeyLength, "a key is too long")
        isFirst = false
        last = walker.key
      }
    }
    require(walker.problems.count <= MSTWalker.maximumProblems, "too many problems are kept")
    require(walker.problemCount >= walker.problems.count, "problems are not counted")
    require(walker.depth <= MSTLayer.maximum + 2, "a path is too long")
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    let empty: [UInt8] = [0xa2, 0x61, 0x65, 0x80, 0x61, 0x6c, 0xf6]
    var nodes = [empty]
    if let corpus {
      nodes += try corpus.blocks(limit: 4096, count: 400) { (try? MSTNode($0)) != nil }
    }
    let framed = nodes.map { [UInt8($0.count >> 8), UInt8($0.count & 0xff)] + $0 }
    var rows: [[UInt8]] = []
    for start in stride(from: 0, to: framed.count, by: 8) {
      rows.append(framed[start..<min(start + 8, framed.count)].flatMap { $0 })
    }
    return nodes + framed + rows
  }
}
