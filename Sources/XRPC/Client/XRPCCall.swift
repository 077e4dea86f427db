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
  /// The JSON that is sent along with a call that has something done; made when it is sent, so that
  /// what must not show in a call does not.
  private var input: @Sendable () -> [UInt8] = { [] }
  /// What in the input or its like must not come back in a message.
  private(set) var secrets: [Secret] = []

  /// Whether a call that was not answered may be made again without a second thought.
  var isRepeatable: Bool
  /// Whether servers have limits for this method alone, which the caller waits for.
  var hasOwnLimit: Bool
  /// The header fields that it takes beside the usual ones.
  var fields: Fields = []
  /// Whether the answer holds tokens, so that no message may quote it.
  var answersWithSecrets = false
  /// Whether the server may have to prepare the answer, so that nothing may come for a while.
  var isPrepared = false
  /// Whether the server passes the call on to another service, whose failures are not its own.
  var isForwarded = false
  /// What is sent instead of JSON, with its media type, and for how many seconds the server may
  /// work on it without a word.
  var upload: (body: RequestBody, contentType: String, patience: Int)?

  /// A call that asks for something.
  ///
  /// It may be made again.
  init(get nsid: String, _ parameters: [(name: String, value: String?)] = []) {
    self.nsid = nsid
    method = .get
    self.parameters = parameters.compactMap { name, value in value.map { (name, $0) } }
    isRepeatable = true
    hasOwnLimit = false
  }

  /// A call that has something done.
  ///
  /// It may not be made again, unless that is said, because it may have been done, whatever came
  /// back.
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

  /// The same with some of it set.
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
  /// Reads the answer, tolerant of what servers leave out or add.
  private let read: @Sendable (Answer) throws(AnswerFault) -> Output

  /// How many bytes of JSON are accepted: a thousand CIDs are some 60 KiB.
  static var maximumBytes: Int { 1 << 20 }

  init(
    _ call: XRPCCall, _ read: @escaping @Sendable (Answer) throws(AnswerFault) -> Output
  ) {
    (self.call, self.read) = (call, read)
  }

  /// Reads the body of an answer of success, whatever its media type is said to be.
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

/// What an answer does not say, or not as it should.
package struct AnswerFault: Error, Equatable {
  /// What is wrong, in words.
  package let what: String
  /// A fault.
  package init(_ what: String) { self.what = what }
}
