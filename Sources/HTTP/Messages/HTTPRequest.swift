/// A request to a server.
package struct HTTPRequest: Sendable {
  /// The methods that XRPC, identity and object stores need.
  package enum Method: String, Sendable {
    /// Asks for something.
    case get = "GET"
    /// Makes the server do something.
    case post = "POST"
    /// Asks for the head of the answer alone.
    case head = "HEAD"
    /// Stores an object.
    case put = "PUT"
    /// Removes an object.
    case delete = "DELETE"
  }

  /// The method.
  package var method: Method
  /// The absolute URL, `http` or `https`.
  package var url: String { didSet { parsed = nil } }
  /// Header fields besides those that the transport sets itself (`Host`, `User-Agent`,
  /// `Accept-Encoding`).
  package var fields: [(name: String, value: String)]
  /// The body.
  package var body: RequestBody
  /// From which byte on the body is wanted: 0, or the number of bytes that came in an earlier
  /// attempt.
  ///
  /// The answer says where it begins.
  package var offset: UInt64 = 0
  /// Whether a field asks for a part of the body (`Range`).
  ///
  /// The caller then has to check which part the answer brings.
  package var asksForPart = false
  /// Whether the answer may be compressed on the way.
  package var acceptsCompression: Bool
  /// Whether the body is long: it may take any time while bytes arrive.
  ///
  /// All of any other answer has to come soon.
  package var isStreamed: Bool
  /// Whether the server may have to prepare the answer, so that nothing may come for a while.
  package var isPrepared = false
  /// For how many seconds nothing may come, where that is longer than for other requests: a server
  /// that takes a whole repository in says nothing until it has.
  package var patience: Int?
  /// Whether the server may have a limit for this method alone.
  ///
  /// What an answer says of that limit is not applied to other requests, and a refusal (429) is
  /// handed to the caller, who waits.
  package var hasOwnLimit = false
  /// Whether the server passes the request on to another service.
  ///
  /// How that service fails, and which limits it has, says nothing of what else the server is
  /// requested.
  package var isForwarded = false
  /// Whether a redirection is followed; a request that carries a secret is not sent to where a
  /// server points.
  package var followsRedirects: Bool
  /// Whether a server named the URL, so that only addresses that any server may point to are asked:
  /// not those that the user named.
  package var isPointedTo = false
  /// Whether it needs a connection that no other request has used.
  ///
  /// On one that was used before, libcurl asks again by itself, up to five times, if the server
  /// closes it without a word.
  var wantsNewConnection = false
  /// How often it is sent at most; nil for the user's setting.
  ///
  /// If this is 1, its host is not waited for either if that is away.
  package var attempts: Int?

  /// How long all of it may take in seconds, with every wait and every attempt; nil for as long as
  /// the host is waited for.
  package var seconds: Double?
  /// The moment of that, by the network's clock.
  var deadline: Double?
  /// How much of it is left for the attempt.
  var secondsLeft: Int?

  /// The URL, taken apart once for all that the request goes through.
  private var parsed: HTTPURL?

  /// A request.
  package init(
    _ method: Method = .get, _ url: String, fields: [(name: String, value: String)] = [],
    body: [UInt8] = [], acceptsCompression: Bool = true, isStreamed: Bool = false,
    followsRedirects: Bool = true, attempts: Int? = nil
  ) {
    (self.method, self.url, self.fields, self.body) = (method, url, fields, RequestBody(body))
    (self.acceptsCompression, self.isStreamed) = (acceptsCompression, isStreamed)
    (self.followsRedirects, self.attempts) = (followsRedirects, attempts)
  }

  /// The URL, taken apart.
  ///
  /// - Throws: ``TransportError`` if it is neither `http` nor `https`, or carries a user name.
  func target() throws(TransportError) -> HTTPURL {
    if let parsed { parsed } else { try HTTPURL(url) }
  }

  /// Checks that it may still be sent then.
  ///
  /// - Throws: ``TransportError`` if that is too late.
  func checkDeadline(_ moment: Double) throws(TransportError) {
    guard let deadline, let seconds, moment >= deadline else { return }
    throw TransportError(.late(seconds: seconds), url: "\(try target())")
  }

  /// Takes the URL apart, for all that the request goes through.
  ///
  /// - Throws: ``TransportError`` as ``target()`` does.
  mutating func resolveTarget() throws(TransportError) { parsed = try target() }
}
