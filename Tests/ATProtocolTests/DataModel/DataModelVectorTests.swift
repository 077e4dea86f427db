import ATProtocol
import Foundation
import IPLD
import TestSupport
import Testing

/// One entry of the files of conformance vectors on the data model.
struct DataModelVector: Sendable, CustomTestStringConvertible {
  let file: String
  let name: String
  /// The vector's JSON, as another library writes it.
  let json: [UInt8]
  let cbor: [UInt8]?
  let cid: String?

  var testDescription: String { "\(file) \(name)" }

  /// All entries of the corpus's files whose name ends with `suffix`.
  static func all(suffix: String) -> [DataModelVector] {
    Corpus.files(under: "atproto-interop-tests/data-model", suffix: suffix).flatMap { path in
      guard let bytes = try? Corpus.bytes(path),
        let items = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [[String: Any]]
      else { return [DataModelVector]() }
      return items.enumerated().compactMap { index, item in
        guard let value = item["json"],
          let json = try? JSONSerialization.data(
            withJSONObject: value, options: [.fragmentsAllowed])
        else { return nil }
        let base64 = (item["cbor_base64"] as? String).map {
          $0 + String(repeating: "=", count: (4 - $0.utf8.count % 4) % 4)
        }
        return DataModelVector(
          file: String(path.split(separator: "/").last ?? ""),
          name: item["note"] as? String ?? "\(index)", json: [UInt8](json),
          cbor: base64.flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) },
          cid: item["cid"] as? String)
      }
    }
  }

  static let fixtures = all(suffix: "-fixtures.json")
  static let valid = all(suffix: "-valid.json")
  static let invalid = all(suffix: "-invalid.json")
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Data model conformance vectors` {
  @Test func `there are some of each sort`() {
    #expect(!DataModelVector.fixtures.isEmpty)
    #expect(!DataModelVector.valid.isEmpty)
    #expect(!DataModelVector.invalid.isEmpty)
  }

  @Test(arguments: DataModelVector.fixtures)
  func `JSON and DAG-CBOR are two forms of one value`(_ vector: DataModelVector) throws {
    let cbor = try #require(vector.cbor)
    let value = try DataModelJSON.decode(vector.json)
    try DataModel.check(value)
    #expect(try DAGCBOREncoder.encode(value) == cbor)
    #expect(CID(codec: .dagCBOR, hashing: cbor.span).description == vector.cid)
    #expect(try DAGCBORDecoder.decode(cbor.span) == value)

    for pretty in [false, true] {
      let json = value.json(pretty: pretty)
      #expect(try DataModelJSON.decode(Array(json.utf8)) == value)
      let ours = try #require(
        try JSONSerialization.jsonObject(with: Data(json.utf8)) as? NSDictionary)
      let theirs = try #require(
        try JSONSerialization.jsonObject(with: Data(vector.json)) as? NSDictionary)
      #expect(ours == theirs)
    }
  }

  @Test(arguments: DataModelVector.valid)
  func `accepts a valid value`(_ vector: DataModelVector) throws {
    let value = try DataModelJSON.decode(vector.json)
    try DataModel.check(value)
    let cbor = try DAGCBOREncoder.encode(value)
    #expect(try DAGCBORDecoder.decode(cbor.span, profile: .atproto) == value)
  }

  @Test(arguments: DataModelVector.invalid)
  func `rejects an invalid value`(_ vector: DataModelVector) {
    #expect(throws: (any Error).self) {
      try DataModel.check(try DataModelJSON.decode(vector.json))
    }
  }
}
