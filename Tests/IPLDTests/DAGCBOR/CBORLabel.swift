import IPLD
import TestSupport

/// One vector of `cbor/cbor-labels.json`: bytes from another project's test suite, and whether they
/// are DAG-CBOR.
struct CBORLabel: Decodable, CustomStringConvertible {
  enum Verdict: String, Decodable {
    case accept, reject
    /// Legal, but beyond what a reader has to support.
    case implementationLimit = "implementation-limit"
  }

  let source: String
  let name: String
  let bytes: Int
  let sha256: String
  let hex: String?
  let payloadFile: String?
  let strictDAGCBOR: Verdict
  let atprotoDataModel: Verdict
  let isMap: Bool?

  enum CodingKeys: String, CodingKey {
    case source, name, bytes, sha256, hex
    case payloadFile = "payload_file"
    case strictDAGCBOR = "strict_dag_cbor"
    case atprotoDataModel = "atproto_data_model"
    case isMap = "is_map"
  }

  static func all() throws -> [CBORLabel] {
    try Corpus.json("cbor/cbor-labels.json", as: [CBORLabel].self)
  }

  var description: String { "\(source): \(name)" }

  func verdict(_ profile: DAGCBORProfile) -> Verdict {
    switch profile {
    case .dagCBOR: strictDAGCBOR
    case .atproto: atprotoDataModel
    }
  }

  /// The vector's bytes: in the label itself, in a file that it names, or in the file that it was
  /// taken from.
  func payload() throws -> [UInt8] {
    if let hex { return try [UInt8](hex: hex) }
    if let payloadFile { return try Corpus.bytes(payloadFile) }
    if let bytes = try? Corpus.bytes("cbor/files/\(source)") { return bytes }
    return try Corpus.bytes("cbor/\(source)")
  }
}
