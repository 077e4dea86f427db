internal import ATProtocol
internal import HTTP
internal import IPLD

/// A call of a method of XRPC: what is sent (<https://atproto.com/specs/xrpc>).
///
/// The methods are static functions, each by the name that its lexicon gives it; those that answer
/// with JSON are an ``XRPCQuery``.
package struct XRPCCall: Sendable {
  /// Names with values.
  package typealias Fields = [(name: String, value: String)]

  /// The name of the method.
  package let nsid: String
  /// How it is called.
  let method: HTTPRequest.Method
  /// The parameters in the query; the same name may occur several times.
  private(set) var parameters: Fields = []
  /// The JSON input of a procedure; made when it is sent, so that secrets do not show in a call.
  private var input: @Sendable () -> [UInt8] = { [] }
  /// The secrets in the input that must not appear in a message.
  private(set) var secrets: [Secret] = []

  /// Whether an unanswered call may safely be made again.
  var isRepeatable: Bool
  /// Whether servers have limits for this method alone, which the caller waits for.
  var hasOwnLimit: Bool
  /// The header fields that it has in addition to the usual ones.
  var fields: Fields = []
  /// Whether the answer holds tokens, so that no message may quote it.
  var answersWithSecrets = false
  /// Whether the server may need time to prepare the answer.
  var isPrepared = false
  /// How long all of it may take in seconds, with every wait; nil for as long as its host is waited
  /// for.
  var seconds: Double?
  /// Whether the server passes the call on to another service, whose failures are not its own.
  var isForwarded = false
  /// What is sent instead of JSON, with its media type, and for how many seconds the server may
  /// work on it without sending anything.
  var upload: (body: RequestBody, contentType: String, patience: Int)?

  /// A query, which changes nothing.
  ///
  /// It may be made again.
  init(get nsid: String, _ parameters: [(name: String, value: String?)] = []) {
    self.nsid = nsid
    method = .get
    self.parameters = parameters.compactMap { name, value in value.map { (name, $0) } }
    isRepeatable = true
    hasOwnLimit = false
  }

  /// A procedure, which may change something.
  ///
  /// It is not repeated, unless it is marked as repeatable, because it may have been carried out,
  /// whatever came back.
  init(
    post nsid: String, hiding secrets: [Secret] = [], isRepeatable: Bool = false,
    _ input: @autoclosure @escaping @Sendable () -> [UInt8] = []
  ) {
    self.nsid = nsid
    method = .post
    self.input = input
    self.secrets = secrets
    self.isRepeatable = isRepeatable
    hasOwnLimit = true
  }

  /// A copy with some properties changed.
  func with(_ change: (inout XRPCCall) -> Void) -> XRPCCall {
    var call = self
    change(&call)
    return call
  }

  /// Where it is sent, without parameters.
  func url(on service: String) -> String { "\(service)/xrpc/\(nsid)" }

  /// The request to a server.
  func request(to service: String) -> HTTPRequest {
    var url = url(on: service)
    for (index, parameter) in parameters.enumerated() {
      url += (index == 0 ? "?" : "&") + parameter.name + "=" + HTTPURL.escaped(parameter.value)
    }
    var request = HTTPRequest(method, url, fields: fields, body: input())
    request.followsRedirects = method == .get
    request.hasOwnLimit = hasOwnLimit
    request.isPrepared = isPrepared
    request.isForwarded = isForwarded
    request.seconds = seconds
    request.attempts = isRepeatable ? nil : 1
    if let upload {
      request.body = upload.body
      request.isStreamed = true
      request.isPrepared = true
      request.patience = upload.patience
      request.fields.append(("Content-Type", upload.contentType))
    } else if request.body.byteCount > 0 {
      request.fields.append(("Content-Type", "application/json"))
    }
    return request
  }

  /// An object of JSON without the fields that have no value.
  static func json(_ fields: KeyValuePairs<String, IPLDValue?>) -> [UInt8] {
    var map = IPLDMap()
    for (key, value) in fields { map[key] = value }
    return DataModelJSON.encode(.map(map))
  }
}

/// A call that is answered with a small JSON object, and how that is read.
package struct XRPCQuery<Output: Sendable>: Sendable {
  let call: XRPCCall
  /// Reads the answer, and tolerates what servers leave out or add.
  private let read: @Sendable (Answer) throws(AnswerFault) -> Output

  /// How many bytes of JSON are accepted: a thousand CIDs are some 60 KiB.
  static var maximumBytes: Int { 1 << 20 }

  init(
    _ call: XRPCCall, _ read: @escaping @Sendable (Answer) throws(AnswerFault) -> Output
  ) {
    (self.call, self.read) = (call, read)
  }

  /// Reads the body of a successful answer, whatever its media type.
  ///
  /// - Throws: ``XRPCError`` if it is something else, the page of a proxy for one.
  func read(_ body: [UInt8], _ delivery: Network.Delivery, hiding secrets: [Secret])
    throws(XRPCError) -> Output
  {
    let fault: String
    do {
      return try read(Answer(try DataModelJSON.decode(body)))
    } catch let error as AnswerFault {
      fault = error.what
    } catch {
      fault = "it is not JSON: \(error)"
    }
    throw XRPCError(call, delivery, body: body, fault: fault, hiding: secrets)
  }
}

/// What is missing or malformed in an answer.
package struct AnswerFault: Error, Equatable {
  /// What is wrong, in words.
  package let what: String
  /// A fault.
  package init(_ what: String) { self.what = what }
}
