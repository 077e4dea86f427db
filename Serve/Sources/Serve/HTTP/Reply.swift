import ATProtocol
import IPLD
import NIOCore
import NIOHTTP1
import Snapshots

/// Why a request is not answered with what it asked for, as AT Protocol says it.
struct XRPCFault: Error {
  let status: HTTPResponseStatus
  /// The name of the error in the lexicon.
  let name: String
  /// The message for people.
  let message: String

  init(_ name: String, _ message: String, status: HTTPResponseStatus = .badRequest) {
    (self.name, self.message, self.status) = (name, message, status)
  }

  /// What is said of any error.
  init(_ error: any Error) {
    switch error {
    case let fault as XRPCFault: self = fault
    case is WorkThreads.Busy: self = .busy
    case let problem as MSTProblem where problem.kind == .missing:
      self = .missing("tree node \(problem.node)")
    case RecordProofFault.missingBlock(let cid), SnapshotError.blockMissing(let cid),
      SnapshotError.notPacked(let cid):
      self = .missing("block \(cid)")
    default:
      self.init(
        "InternalServerError", "the archive cannot be read: \(error)",
        status: .internalServerError)
    }
  }

  static let busy = XRPCFault(
    "NotEnoughResources", "the server is overloaded: try again in a few seconds",
    status: .serviceUnavailable)

  /// The error for what the archive should have and lacks: permanent, so clients need not ask
  /// again.
  static func missing(_ what: String) -> XRPCFault {
    XRPCFault("BlockNotFound", "missing in this archive: \(what)")
  }

  static func invalid(_ message: String) -> XRPCFault { XRPCFault("InvalidRequest", message) }

  var response: Response {
    var response = Response.json(status: status) { json in
      json.field("error", name)
      json.field("message", message)
    }
    if status == .serviceUnavailable { response.headers[.retryAfter] = "5" }
    return response
  }
}

extension JSONWriter {
  mutating func field(_ name: String, _ value: String) {
    key(name)
    string(value)
  }

  mutating func field(_ name: String, _ value: Bool) {
    key(name)
    boolean(value)
  }

  mutating func field(_ name: String, _ values: [String]) {
    key(name)
    beginArray()
    for value in values { string(value) }
    endArray()
  }
}

extension Response {
  /// An object as JSON.
  static func json(
    status: HTTPResponseStatus = .ok, _ writeFields: (inout JSONWriter) throws -> Void
  ) rethrows -> Response {
    var json = JSONWriter()
    json.beginObject()
    try writeFields(&json)
    json.endObject()
    return .bytes(json.takeBytes(), type: "application/json; charset=utf-8", status: status)
  }

  /// Bytes of this type.
  static func bytes(
    _ bytes: [UInt8], type: String, status: HTTPResponseStatus = .ok
  ) -> Response {
    var headers = HTTPHeaders()
    headers[.contentType] = type
    headers[.xContentTypeOptions] = "nosniff"
    return Response(status: status, headers: headers, body: .bytes(ByteBuffer(bytes: bytes)))
  }

  /// A line for people.
  static func text(_ text: String, status: HTTPResponseStatus = .ok) -> Response {
    .bytes(Array(text.utf8), type: "text/plain; charset=utf-8", status: status)
  }
}

/// The parameters of a query.
struct Parameters {
  private let values: [(name: Substring, value: String)]

  /// Reads a query; a value that is not well percent-encoded is taken as it is.
  init(_ query: Substring) {
    values = query.split(separator: "&").map { part in
      let name = part.prefix { $0 != "=" }
      let value = part.dropFirst(name.count + 1)
      return (name, PercentEncoding.decode(value) ?? String(value))
    }
  }

  /// A parameter; nil if it was not given.
  subscript(_ name: String) -> String? { values.first { $0.name == name }?.value }

  /// A required parameter.
  func required(_ name: String) throws(XRPCFault) -> String {
    guard let value = self[name], !value.isEmpty else {
      throw .invalid("Params must have the property \"\(name)\"")
    }
    return value
  }

  /// All values of a parameter.
  func all(_ name: String) -> [String] { values.filter { $0.name == name }.map(\.value) }

  /// How many things are requested.
  func limit(_ usual: Int, upTo maximum: Int) throws(XRPCFault) -> Int {
    guard let text = self["limit"] else { return usual }
    guard let limit = Int(text), 1...maximum ~= limit else {
      throw .invalid("limit must be a number from 1 to \(maximum)")
    }
    return limit
  }

  /// A CID.
  static func cid(_ text: String) throws(XRPCFault) -> CID {
    do throws(CIDError) {
      return try CID(text)
    } catch {
      throw .invalid("\"\(text.prefix(100))\" is not a CID: \(error)")
    }
  }
}
