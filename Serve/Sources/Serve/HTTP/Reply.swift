import ATProtocol
import HTTPTypes
import Hummingbird
import HummingbirdCore
import IPLD
import NIOCore
import Snapshots

/// Why a request is not answered with what it asked for, as AT Protocol says it.
struct XRPCFault: Error {
  let status: HTTPResponse.Status
  /// The name of the error in the lexicon.
  let name: String
  /// What a person reads.
  let message: String

  init(_ name: String, _ message: String, status: HTTPResponse.Status = .badRequest) {
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
    "NotEnoughResources", "the server has too much to do: ask again in a few seconds",
    status: .serviceUnavailable)

  /// What the archive should have and has not: for good, so that no one needs to ask again.
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
    status: HTTPResponse.Status = .ok, _ writeFields: (inout JSONWriter) throws -> Void
  ) rethrows -> Response {
    var json = JSONWriter()
    json.beginObject()
    try writeFields(&json)
    json.endObject()
    return .bytes(json.takeBytes(), type: "application/json; charset=utf-8", status: status)
  }

  /// Bytes of this type.
  static func bytes(
    _ bytes: [UInt8], type: String, status: HTTPResponse.Status = .ok
  ) -> Response {
    var headers = HTTPFields()
    headers[.contentType] = type
    headers[.xContentTypeOptions] = "nosniff"
    return Response(
      status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  /// A line for people.
  static func text(_ text: String, status: HTTPResponse.Status = .ok) -> Response {
    .bytes(Array(text.utf8), type: "text/plain; charset=utf-8", status: status)
  }
}

extension HTTPField.Name {
  static let xContentTypeOptions = named("X-Content-Type-Options")
  static let repoRev = named("Atproto-Repo-Rev")
  static let referrerPolicy = named("Referrer-Policy")
  static let crossOriginResourcePolicy = named("Cross-Origin-Resource-Policy")
  static let xFrameOptions = named("X-Frame-Options")

  private static func named(_ text: StaticString) -> Self {
    guard let name = Self("\(text)") else { preconditionFailure("no name of a header: \(text)") }
    return name
  }
}

/// The parameters of a query.
struct Parameters {
  private let values: FlatDictionary<Substring, Substring>

  init(_ uri: URI) { values = uri.queryParameters }

  /// A parameter; nil if it was not given.
  subscript(_ name: String) -> String? { values[name[...]].map(String.init) }

  /// A parameter that has to be there.
  func required(_ name: String) throws(XRPCFault) -> String {
    guard let value = self[name], !value.isEmpty else {
      throw .invalid("Params must have the property \"\(name)\"")
    }
    return value
  }

  /// All values of a parameter.
  func all(_ name: String) -> [String] { values[values: name[...]].map(String.init) }

  /// How many things are asked for.
  func limit(_ usual: Int, upTo maximum: Int) throws(XRPCFault) -> Int {
    guard let text = self["limit"] else { return usual }
    guard let limit = Int(text), limit >= 1 else {
      throw .invalid("limit must be a number from 1 to \(maximum)")
    }
    // As the reference server does not, but many others do.
    return min(limit, maximum)
  }

  /// A CID.
  static func cid(_ text: String) throws(XRPCFault) -> CID {
    do throws(CIDError) {
      return try CID(text)
    } catch {
      throw .invalid("\"\(text.prefix(100))\" is no CID: \(error)")
    }
  }
}
