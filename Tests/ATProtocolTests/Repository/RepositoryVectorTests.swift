import ATProtocol
import Archive
import Foundation
import IPLD
import Repository
import TestSupport
import Testing

/// What a `*.expected.json` of the corpus says about the CAR beside it, by the recipe in the
/// corpus's index.
struct ExpectedRepository: Decodable, Sendable {
  let file: String
  let bytes: Int
  let expected: String
  let error: String?
  let car_version: Int?
  let roots: [String]?
  let block_count: Int?
  let distinct_block_count: Int?
  let hash_mismatch_blocks: [String]?
  let codecs: [String: Int]?
  let root_is_first_block: Bool?
  let root_keys: [String]?
  let did: String?
  let commit_version: Int?
  let rev: String?
  let prev: String?
  let has_prev_field: Bool?
  let commit_keys: [String]?
  let data: String?
  let sig_bytes: Int?
  let mst_node_count: Int?
  let mst_root_layer: Int?
  let mst_depth: Int?
  let mst_missing_nodes: [String]?
  let mst_problem_count: Int?
  let record_count: Int?
  let distinct_record_cids: Int?
  let records_by_collection: [String: Int]?
  let records_missing_block_count: Int?
  let record_reencode_differs: Int?
  let floats_in_records: Int?
  let records_sha256: String?
  let first_record: String?
  let last_record: String?
  let blob_ref_count: Int?
  let blob_cid_count: Int?
  let blob_cids: [String]?
  let blob_cids_sha256: String?
  let blob_total_declared_bytes: Int?
  let blob_mime_types: [String: Int]?
  let legacy_blob_cid_count: Int?
  let legacy_blob_cids: [String]?
  let legacy_blob_cids_sha256: String?
  let unreachable_block_count: Int?
  let complete: Bool?
}

/// A repository CAR of the corpus with what to expect of it.
struct RepositoryVector: Sendable, CustomTestStringConvertible {
  let path: String
  let expected: ExpectedRepository

  var testDescription: String { path }

  /// Whether a reader has to refuse the file.
  var isToBeRefused: Bool { expected.expected.hasPrefix("reject") }

  static let all: [RepositoryVector] = Corpus.files(under: "repos", suffix: ".expected.json")
    .compactMap { list in
      guard let expected = try? Corpus.json(list, as: ExpectedRepository.self) else { return nil }
      let folder = list.split(separator: "/").dropLast().joined(separator: "/")
      return RepositoryVector(path: "\(folder)/\(expected.file)", expected: expected)
    }

  static let readable = all.filter { !$0.isToBeRefused }
  static let refused = all.filter(\.isToBeRefused)
  static let withCommit = readable.filter { $0.expected.data != nil }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Inspecting the corpus's repositories` {
  @Test func `every file with expectations is there, and every CAR has them`() {
    #expect(!RepositoryVector.withCommit.isEmpty)
    #expect(
      Set(RepositoryVector.all.map(\.path)) == Set(Corpus.files(under: "repos", suffix: ".car")))
  }

  @Test(arguments: RepositoryVector.readable)
  func `finds the CAR that is expected`(_ vector: RepositoryVector) throws {
    let expected = vector.expected
    let bytes = try Corpus.bytes(vector.path)
    let found = try inspect(bytes)
    #expect(bytes.count == expected.bytes)
    #expect(found.carError == nil)
    #expect(found.carVersion == expected.car_version)
    #expect(found.header.roots.map(\.description) == expected.roots)
    #expect(found.sectionCount == expected.block_count)
    #expect(found.distinctBlockCount == expected.distinct_block_count)
    #expect(found.mismatchedBlocks.map(\.description).sorted() == expected.hash_mismatch_blocks)
    #expect(found.unverifiableBlockCount == 0)
    let codecs = found.codecCounts.map { ("0x\(String($0.rawValue, radix: 16))", $1) }
    #expect(Dictionary(uniqueKeysWithValues: codecs) == expected.codecs)
    #expect(found.rootIsFirstBlock == expected.root_is_first_block)
    if expected.data == nil {
      #expect(found.commit == nil)
      #expect(!found.isWellFormed)
      #expect(!found.isComplete)
      #expect(found.commitError?.rootFields?.sorted() == expected.root_keys)
    }
  }

  @Test(arguments: RepositoryVector.withCommit)
  func `finds the commit and the tree that are expected`(_ vector: RepositoryVector) throws {
    let expected = vector.expected
    let found = try inspect(try Corpus.bytes(vector.path))
    let commit = try #require(found.commit)
    #expect(found.commitError == nil)
    #expect(commit.did.text == expected.did)
    #expect(commit.version == expected.commit_version)
    #expect(commit.rev?.text == expected.rev)
    #expect(commit.prev?.description == expected.prev)
    #expect(commit.hasPrev == expected.has_prev_field)
    #expect(commit.fields.sorted() == expected.commit_keys)
    #expect(commit.data.description == expected.data)
    #expect(commit.signature.count == expected.sig_bytes)

    #expect(found.nodeCount == expected.mst_node_count)
    #expect(found.rootLayer == expected.mst_root_layer)
    #expect(found.treeDepth == expected.mst_depth)
    #expect(found.missingNodes.map(\.description).sorted() == expected.mst_missing_nodes)
    #expect(found.treeProblemCount == expected.mst_problem_count)
    #expect(found.unreachableBlockCount == expected.unreachable_block_count)
    #expect(found.isComplete == expected.complete)
    #expect(found.isWellFormed == (expected.mst_problem_count == 0))
  }

  @Test(arguments: RepositoryVector.withCommit)
  func `finds the records that are expected`(_ vector: RepositoryVector) throws {
    let expected = vector.expected
    let bytes = try Corpus.bytes(vector.path)
    var lines: [String] = []
    var absent = 0
    let file = try CARFile(MappedFile(copying: bytes))
    let found = RepositoryInspection(of: file) { record in
      lines.append("\(String(decoding: record.key, as: UTF8.self)) \(record.cid)")
      if let number = record.number {
        let body = file.withBody(number) { $0.array }
        #expect(record.cid == .naming(body))
      } else {
        absent += 1
      }
    }
    #expect(found.recordCount == expected.record_count)
    #expect(lines.count == expected.record_count)
    #expect(digest(ofLines: lines.sorted()) == expected.records_sha256)
    #expect(lines.first == expected.first_record)
    #expect(lines.last == expected.last_record)
    #expect(found.distinctRecordCount == expected.distinct_record_cids)
    #expect(found.recordsByCollection == expected.records_by_collection)
    #expect(found.missingRecordCount == expected.records_missing_block_count)
    #expect(absent == expected.records_missing_block_count)
    #expect(found.missingRecords.count == absent)
    #expect(found.nonCanonicalRecordCount == expected.record_reencode_differs)
    #expect(found.floatRecordCount == expected.floats_in_records)
    #expect(found.unreadable.count == 0)
  }

  @Test(arguments: RepositoryVector.withCommit)
  func `finds the blobs that are expected`(_ vector: RepositoryVector) throws {
    let expected = vector.expected
    let found = try inspect(try Corpus.bytes(vector.path)).blobs
    let typed = found.entries.filter(\.isTyped)
    let cids = typed.map(\.cid.description).sorted()
    #expect(found.typedReferenceCount == expected.blob_ref_count)
    #expect(cids.count == expected.blob_cid_count)
    #expect(cids == expected.blob_cids)
    #expect(digest(ofLines: cids) == expected.blob_cids_sha256)
    #expect(typed.compactMap(\.size).reduce(0, +) == expected.blob_total_declared_bytes)
    #expect(found.mimeTypeCounts == expected.blob_mime_types)
    let legacy = found.entries.filter(\.isLegacy).map(\.cid.description).sorted()
    #expect(legacy.count == expected.legacy_blob_cid_count)
    #expect(legacy == expected.legacy_blob_cids)
    #expect(digest(ofLines: legacy) == expected.legacy_blob_cids_sha256)
  }

  @Test(arguments: RepositoryVector.withCommit.filter { $0.expected.complete == true })
  func `building a whole tree anew gives its root and its nodes`(_ vector: RepositoryVector) throws
  {
    let (roots, blocks) = try readCAR(try Corpus.bytes(vector.path))
    let block = try #require(roots.first.flatMap { blocks[$0] })
    let commit = try Commit(block.span)
    let walk = Walk(from: commit.data, in: blocks)
    let (root, nodes) = walk.rebuilt()
    #expect(root == commit.data)
    #expect(nodes.count == walk.nodes.count)
    #expect(nodes.allSatisfy { blocks[$0] == $1 })
  }

  @Test(arguments: RepositoryVector.refused)
  func `refuses what is no repository`(_ vector: RepositoryVector) throws {
    let bytes = try Corpus.bytes(vector.path)
    let found: RepositoryInspection
    do {
      found = try inspect(bytes)
    } catch {
      #expect(error is CARError)
      return
    }
    #expect(!found.isWellFormed)
  }
}
