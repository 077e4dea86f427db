import ATProtocol
import Foundation
import IPLD
import Repository
import TestSupport
import Testing

/// A frame of a relay's stream: two DAG-CBOR items, one after the other, header and body.
struct FrameVector: Sendable, CustomTestStringConvertible {
  struct Expected: Decodable, Sendable {
    struct CAR: Decodable, Sendable {
      let bytes: Int
      let sha256: String
      let block_count: Int
      let hash_ok: Bool
    }
    struct Operation: Decodable, Sendable {
      let action: String
      let path: String
      let cid: String?
    }
    /// However a problem is written down; only their number counts.
    struct Problem: Decodable, Sendable {
      init(from decoder: any Decoder) {}
    }
    struct Signature: Decodable, Sendable {
      let did_key: String
      /// The curve, and whether the signature is valid.
      let result: [String]
    }
    let file: String
    let bytes: Int
    let t: String
    let op: Int
    let did: String?
    let rev: String?
    let commit: String?
    let root_matches: Bool?
    let car: CAR?
    let ops: [Operation]?
    let data: String?
    let mst_nodes_present: Int?
    let mst_nodes_missing: Int?
    let mst_problems: [Problem]?
    let signature: Signature?
  }

  let path: String
  let expected: Expected

  var testDescription: String { expected.file }

  static let all: [FrameVector] = Corpus.files(under: "firehose", suffix: "frames.expected.json")
    .flatMap { list -> [FrameVector] in
      let frames = Corpus.files(under: "firehose", suffix: ".frame")
      let expected = (try? Corpus.json(list, as: [Expected].self)) ?? []
      return expected.compactMap { item in
        frames.first { $0.hasSuffix("/\(item.file)") }.map { FrameVector(path: $0, expected: item) }
      }
    }
  static let commits = all.filter { $0.expected.car != nil }

  /// The header and the body.
  func items() throws -> (header: IPLDValue, body: IPLDValue) {
    let bytes = try Corpus.bytes(path)
    #expect(bytes.count == expected.bytes)
    var scanner = DAGCBORScanner()
    repeat { _ = try scanner.next(in: bytes.span) } while scanner.depth > 0
    let (header, body) = (Array(bytes[..<scanner.offset]), Array(bytes[scanner.offset...]))
    return (try DAGCBORDecoder.decode(header.span), try DAGCBORDecoder.decode(body.span))
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Slices of repositories in a relay's frames` {
  @Test func `there are some, and each frame has expectations`() {
    #expect(!FrameVector.commits.isEmpty)
    #expect(
      Set(FrameVector.all.map(\.path)) == Set(Corpus.files(under: "firehose", suffix: ".frame")))
  }

  @Test(arguments: FrameVector.all)
  func `every frame is a header and a body`(_ vector: FrameVector) throws {
    let (header, body) = try vector.items()
    #expect(header["t"]?.string == vector.expected.t)
    #expect(header["op"]?.integer == vector.expected.op)
    #expect(body.map != nil)
  }

  @Test(arguments: FrameVector.commits)
  func `the slice is walked as far as it reaches, without a fault`(_ vector: FrameVector) throws {
    let expected = vector.expected
    let body = try vector.items().body
    let car = try #require(body["blocks"]?.bytes)
    #expect(car.count == expected.car?.bytes)
    #expect(SHA256.digest(of: car.span).description == expected.car?.sha256)

    var records: [String: CID] = [:]
    let found = try inspect(car) { records[String(decoding: $0.key, as: UTF8.self)] = $0.cid }
    #expect(found.carError == nil)
    #expect(found.sectionCount == expected.car?.block_count)
    #expect(found.mismatchedBlocks.isEmpty == expected.car?.hash_ok)
    #expect((found.header.roots.first?.description == expected.commit) == expected.root_matches)
    #expect(found.commit?.did.text == expected.did)
    #expect(found.commit?.rev?.text == expected.rev)
    #expect(found.commit?.data.description == expected.data)
    #expect(found.nodeCount == expected.mst_nodes_present)
    #expect(found.missingNodes.count == expected.mst_nodes_missing)
    #expect(Set(found.missingNodes).count == found.missingNodes.count)
    #expect(found.treeProblems.isEmpty == expected.mst_problems?.isEmpty)
    #expect(found.isComplete == (found.missingNodes.isEmpty && found.missingRecordCount == 0))

    // The slice proves its operations: what they made is in the tree, what they took is not.
    for operation in expected.ops ?? [] {
      #expect(records[operation.path]?.description == operation.cid, "\(operation)")
    }
  }

  /// The accounts' signing keys, by the DID documents that the directory had when the frames were
  /// sent.
  private static let keys: [String: VerificationKey] = {
    guard let bytes = try? Corpus.bytes("firehose/did_docs.json"),
      let documents = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
    else { return [:] }
    return documents.compactMapValues { document in
      guard let data = try? JSONSerialization.data(withJSONObject: document) else { return nil }
      let json = [UInt8](data)
      return try? DIDDocument(json.span).signingKey
    }
  }()

  @Test(arguments: FrameVector.commits)
  func `the commit is signed with its account's key, and proves each operation`(
    _ vector: FrameVector
  ) throws {
    let expected = vector.expected
    let car = try #require(try vector.items().body["blocks"]?.bytes)
    let key = try #require(Self.keys[expected.did ?? ""])
    #expect(key.didKey == expected.signature?.did_key)
    #expect(expected.signature?.result == [key.curve.rawValue, "valid"])

    let (roots, blocks) = try readCAR(car)
    let block = try #require(roots.first.flatMap { blocks[$0] })
    let commit = try Commit(block.span)
    #expect(commit.isSigned(by: key))
    let start = try #require(block.firstRange(of: commit.signature)?.lowerBound)
    for bit in stride(from: 0, to: 512, by: 37) {
      var spoilt = block
      spoilt[start + bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(try !Commit(spoilt.span).isSigned(by: key), "bit \(bit)")
    }

    for operation in expected.ops ?? [] {
      let path = try RecordPath(operation.path)
      switch try RecordProof(judging: car.span, of: path).finding {
      case .record(let cid, _): #expect("\(cid)" == operation.cid)
      case .absent: #expect(operation.cid == nil)
      }
    }
  }
}
