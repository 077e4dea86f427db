import ATProtocol
import Foundation
import IPLD
import TestSupport
import Testing

/// The tests of `mst-test-suite`: differences of trees of seven keys, whose nodes are cut in every
/// way there is.
@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Tree difference vectors` {
  struct Vector: Decodable {
    struct Inputs: Decodable {
      let mst_a: String
      let mst_b: String
    }

    struct Operation: Decodable {
      let rpath: String
      let old_value: String?
      let new_value: String?

      var lines: (forth: String, back: String) {
        let (old, new) = (old_value ?? "-", new_value ?? "-")
        return ("\(rpath) \(old) \(new)", "\(rpath) \(new) \(old)")
      }
    }

    struct Results: Decodable {
      let created_nodes: [String]
      let deleted_nodes: [String]
      let record_ops: [Operation]
    }

    let inputs: Inputs
    let results: Results
  }

  private func line(_ change: MSTDiff.RecordChange) -> String {
    "\(change.path) \(change.old.map { "\($0)" } ?? "-") \(change.new.map { "\($0)" } ?? "-")"
  }

  @Test func `of all pairs of trees are as listed, there and back`() throws {
    let folder = try Tar.unpack("mst-test-suite/diff-tests.tar.gz")
    let names = folder.names().filter { $0.hasSuffix(".json") }
    #expect(names.count >= 4096)
    var trees: [String: Tree] = [:]
    func tree(_ path: String) throws -> Tree {
      if let tree = trees[path] { return tree }
      let car = try readCAR(try Corpus.bytes("mst-test-suite/\(path)"))
      let tree = (root: try #require(car.roots.first), nodes: car.blocks)
      trees[path] = tree
      return tree
    }
    var (loadedCount, loadedInVainCount) = (0, 0)
    for name in names {
      let vector = try JSONDecoder().decode(Vector.self, from: Data(try folder.read(name)))
      let (a, b) = (try tree(vector.inputs.mst_a), try tree(vector.inputs.mst_b))
      let results = vector.results
      for isForth in [true, false] {
        let found = try isForth ? Difference(from: a, to: b) : Difference(from: b, to: a)
        loadedCount += found.loaded.count
        loadedInVainCount += found.loadedInVain.count
        let (created, deleted) =
          isForth ? (found.created, found.deleted) : (found.deleted, found.created)
        #expect(created.map { "\($0)" }.sorted() == results.created_nodes, "\(name)")
        #expect(deleted.map { "\($0)" }.sorted() == results.deleted_nodes, "\(name)")
        let operations = results.record_ops.map { isForth ? $0.lines.forth : $0.lines.back }
        #expect(found.records.map(line) == operations, "\(name)")
      }
    }
    // Where one tree has keys before a subtree of both, the other cannot tell without looking into
    // it.
    #expect(loadedInVainCount * 40 < loadedCount)
    #expect(trees.count == 128)
  }
}
