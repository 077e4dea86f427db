/// What is asked of a server.
public struct HTTPRequest: Sendable {
  /// The methods that XRPC and identity need.
  public enum Method: String, Sendable {
    /// Asks for something.
    case get = "GET"
    /// Has something done.
    case post = "POST"
  }

  /// The method.
  public var method: Method
  /// The absolute URL, `http` or `https`.
  public var url: String
  /// Header fields beside those that the transport sets itself (`Host`, `User-Agent`, `Accept-Encoding`).
  public var fields: [(name: String, value: String)]
  /// What is sent along.
  public var body: [UInt8]
  /// Whether the answer may be compressed on the way: for JSON and CARs, not for blobs, most of which do not shrink.
  public var acceptsCompression: Bool
  /// Whether the body is long, and the sink may have it wait.
  ///
  /// Such an answer has a connection of its own (HTTP/1.1), for the system to hold the server up on. Where answers share one (HTTP/2) libcurl would take the
  /// body of one that waits out of the others' way, which is up to 32 MB of memory for each.
  public var isStreamed: Bool
  /// Whether a redirection is followed; a request that carries a secret is not sent to where a server points.
  public var followsRedirects: Bool

  /// A request.
  public init(
    _ method: Method = .get, _ url: String, fields: [(name: String, value: String)] = [],
    body: [UInt8] = [], acceptsCompression: Bool = true, isStreamed: Bool = false,
    followsRedirects: Bool = true
  ) {
    self.method = method
    self.url = url
    self.fields = fields
    self.body = body
    self.acceptsCompression = acceptsCompression
    self.isStreamed = isStreamed
    self.followsRedirects = followsRedirects
  }
}
