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
  /// Whether a redirection is followed; a request that carries a secret is not sent to where a server points.
  public var followsRedirects: Bool

  /// A request.
  public init(
    _ method: Method = .get, _ url: String, fields: [(name: String, value: String)] = [],
    body: [UInt8] = [], acceptsCompression: Bool = true, followsRedirects: Bool = true
  ) {
    self.method = method
    self.url = url
    self.fields = fields
    self.body = body
    self.acceptsCompression = acceptsCompression
    self.followsRedirects = followsRedirects
  }
}
