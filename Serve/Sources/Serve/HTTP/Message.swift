import NIOCore
import NIOHTTP1

/// What a client asks for (RFC 9112), without the body, which nothing here uses.
struct Request: Sendable {
  /// `GET`, for instance.
  let method: HTTPMethod
  /// What is requested, as it was sent.
  let target: String
  /// The target's path, percent-encoded.
  let path: String
  /// What follows a question mark in the target.
  let query: Substring
  /// The host, and maybe the port, that the request is addressed to; nil if it names none, or
  /// several.
  let authority: String?
  /// The fields of the header.
  let headers: HTTPHeaders

  /// A request as it came.
  init(_ head: HTTPRequestHead) {
    (method, target, headers) = (head.method, head.uri, head.headers)
    let hosts = head.headers["Host"]
    var authority = hosts.count == 1 ? hosts[0] : nil
    var rest = head.uri[...]
    // A target may also be a whole address, and then it says who is asked (section 3.2.2).
    if !rest.hasPrefix("/"), let scheme = rest.firstRange(of: "://") {
      rest = rest[scheme.upperBound...]
      let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
      authority = String(rest[..<end])
      rest = rest[end...]
    }
    self.authority = authority
    let path = rest.prefix { $0 != "?" }
    self.path = path.isEmpty ? "/" : String(path)
    query = rest.dropFirst(path.count + 1)
  }

  /// Whether the request only reads.
  var isReading: Bool { method == .GET || method == .HEAD }
}

/// The answer to a client.
struct Response: Sendable {
  /// Writes a body.
  ///
  /// An error that it throws ends the connection, so that the client sees that the body is
  /// incomplete.
  typealias Write = @concurrent @Sendable (BodyWriter) async throws -> Void

  /// What follows the header.
  enum Body: Sendable {
    /// Bytes that are at hand.
    case bytes(ByteBuffer)
    /// What is written while it is sent; without a length, it goes out in chunks.
    case written(length: Int?, Write)
  }

  var status: HTTPResponseStatus
  var headers: HTTPHeaders
  var body: Body

  init(
    status: HTTPResponseStatus, headers: HTTPHeaders = [:], body: Body = .bytes(ByteBuffer())
  ) {
    (self.status, self.headers, self.body) = (status, headers, body)
  }

  /// How many bytes the body has; nil if that is not known before it has been written.
  var length: Int? {
    switch body {
    case .bytes(let bytes): bytes.readableBytes
    case .written(let length, _): length
    }
  }
}

/// Writes the body of a response no faster than the connection takes it.
struct BodyWriter: Sendable {
  let parts: NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>
  let channel: any Channel

  /// Sends bytes, as soon as the connection takes some.
  func write(_ bytes: ByteBuffer) async throws {
    try await parts.write(.body(.byteBuffer(bytes)))
  }

  /// Waits until the connection takes more; a writer calls this before it makes the next piece.
  ///
  /// What is written is handed to the thread of the connection. A writer on another thread is told
  /// to wait only once that thread has looked at what it was handed, and would fill memory in the
  /// meantime.
  func pause() async throws {
    try await channel.eventLoop.submit {}.get()
    try await write(ByteBuffer())
  }
}

extension HTTPHeaders {
  /// The fields that are read or written here.
  enum Name: String {
    case acceptRanges = "Accept-Ranges"
    case accessControlAllowHeaders = "Access-Control-Allow-Headers"
    case accessControlAllowMethods = "Access-Control-Allow-Methods"
    case accessControlAllowOrigin = "Access-Control-Allow-Origin"
    case accessControlExposeHeaders = "Access-Control-Expose-Headers"
    case accessControlMaxAge = "Access-Control-Max-Age"
    case cacheControl = "Cache-Control"
    case connection = "Connection"
    case contentDisposition = "Content-Disposition"
    case contentLength = "Content-Length"
    case contentRange = "Content-Range"
    case contentSecurityPolicy = "Content-Security-Policy"
    case contentType = "Content-Type"
    case crossOriginResourcePolicy = "Cross-Origin-Resource-Policy"
    case date = "Date"
    case eTag = "ETag"
    case ifMatch = "If-Match"
    case ifNoneMatch = "If-None-Match"
    case ifRange = "If-Range"
    case location = "Location"
    case range = "Range"
    case referrerPolicy = "Referrer-Policy"
    case repoRev = "Atproto-Repo-Rev"
    case retryAfter = "Retry-After"
    case vary = "Vary"
    case xContentTypeOptions = "X-Content-Type-Options"
    case xFrameOptions = "X-Frame-Options"
  }

  /// The value of a field; of several of one name, all values as one list (RFC 9110, section 5.3).
  subscript(_ name: Name) -> String? {
    get {
      let values = self[name.rawValue]
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
    set {
      remove(name: name.rawValue)
      if let newValue { add(name: name.rawValue, value: newValue) }
    }
  }
}
