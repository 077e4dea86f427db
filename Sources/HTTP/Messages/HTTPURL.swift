internal import CCurl

/// A URL of `http` or `https`, taken apart by the parser that connects by it, so that what was
/// checked is what is used.
///
/// The C functions are libcurl's `curl_url_set` and `curl_url_get`.
package struct HTTPURL: Hashable, Sendable, CustomStringConvertible {
  /// The whole URL, without a fragment.
  package let text: String
  /// Whether it is `https`.
  package let isSecure: Bool
  /// The host and the port.
  package let authority: Authority
  /// What comes after the authority, without the query.
  package let path: String

  /// Parses an absolute URL, or one that is relative to a document's, such as a `Location`.
  ///
  /// - Throws: ``TransportError`` if it is neither `http` nor `https`, or carries a user name.
  package init(_ text: String, relativeTo base: HTTPURL? = nil) throws(TransportError) {
    func error(_ reason: TransportError.Reason) -> TransportError {
      TransportError(reason, url: Excerpt.of(String(text.prefix { $0 != "?" })))
    }
    let library = try CurlLibrary.forURL(String(text.prefix { $0 != "?" }))
    guard let handle = library.functions.curl_url() else {
      throw error(.unavailable("no memory"))
    }
    defer { unsafe library.functions.curl_url_cleanup(handle) }
    let flags = CUnsignedInt(CURLU_DISALLOW_USER) | CUnsignedInt(CURLU_URLENCODE)
    for part in [base?.text, text].compactMap(\.self) {
      guard unsafe library.functions.curl_url_set(handle, CURLUPART_URL, part, flags) == CURLUE_OK
      else { throw error(.unusableURL) }
    }
    _ = unsafe library.functions.curl_url_set(handle, CURLUPART_FRAGMENT, nil, 0)

    func part(_ part: CURLUPart, _ flags: CUnsignedInt = 0) -> String? {
      var value: UnsafeMutablePointer<CChar>?
      guard unsafe library.functions.curl_url_get(handle, part, &value, flags) == CURLUE_OK,
        let value = unsafe value
      else { return nil }
      defer { unsafe library.functions.curl_free(value) }
      return unsafe String(cString: value)
    }
    guard let whole = part(CURLUPART_URL), let scheme = part(CURLUPART_SCHEME),
      scheme == "http" || scheme == "https", let host = part(CURLUPART_HOST), !host.isEmpty,
      host != ".",
      // A host is ASCII (RFC 3986, section 3.2.2), and what is not could look like another one.
      host.utf8.allSatisfy({ $0 < 0x80 }),
      let port = part(CURLUPART_PORT, CUnsignedInt(CURLU_DEFAULT_PORT)).flatMap({ UInt16($0) })
    else { throw error(.unusableURL) }
    self.text = whole
    isSecure = scheme == "https"
    authority = Authority(host: host, port: port)
    path = part(CURLUPART_PATH) ?? "/"
  }

  /// Whether both lead to the same server by the same scheme (RFC 6454).
  package func hasSameOrigin(as other: HTTPURL) -> Bool {
    isSecure == other.isSecure && authority == other.authority
  }

  /// The URL without its query, which is what messages show.
  package var description: String { origin + path }

  /// The URL of scheme, host and port alone.
  package var origin: String {
    (isSecure ? "https://" : "http://") + authority.text(defaultPort: isSecure ? 443 : 80)
  }

  /// A text as it stands in a path or a query: everything but unreserved characters (RFC 3986,
  /// section 2.3) is written in hexadecimal digits.
  ///
  /// - Parameters:
  ///   - text: the text.
  ///   - isPath: whether a slash stays what it is.
  package static func escaped(_ text: String, isPath: Bool = false) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch Unicode.Scalar(byte) {
      case "A"..."Z", "a"..."z", "0"..."9", "-", ".", "_", "~": bytes.append(byte)
      case "/" where isPath: bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A host and a port of it.
package struct Authority: Hashable, Sendable {
  /// The host: a name in lower case without a dot at its end, or an address without brackets.
  package let host: String
  /// The port.
  package let port: UInt16

  /// A host, in any spelling, and its port.
  package init(host: String, port: UInt16) {
    var host = host.lowercased()
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    if host.hasSuffix(".") { host.removeLast() }
    self.host = host
    self.port = port
  }

  /// As in a URL, the port left out if it is the default.
  func text(defaultPort: UInt16) -> String {
    (host.contains(":") ? "[\(host)]" : host) + (port == defaultPort ? "" : ":\(port)")
  }
}
