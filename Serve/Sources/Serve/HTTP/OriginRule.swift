import NIOHTTP1

/// Which websites may read the answers of the API (Fetch, section 3.3, "CORS protocol").
///
/// Any website can have the browser on this machine send requests to the server. What is sealed is
/// not for all of them.
struct OriginRule: Sendable {
  /// The origins that were named; `*` is all.
  let allowed: [String]

  /// Whether every website may read answers.
  ///
  /// - Parameter sealed: whether a served archive is sealed.
  private func allowsAll(sealed: Bool) -> Bool {
    allowed.contains("*") || allowed.isEmpty && !sealed
  }

  /// What is printed about websites; nil where all may read, as on any personal data server.
  ///
  /// - Parameter sealed: whether a served archive is sealed.
  func sentence(sealed: Bool) -> String? {
    if allowsAll(sealed: sealed) {
      return sealed ? "all websites in a browser here may read it, sealed archives too" : nil
    }
    return allowed.isEmpty
      ? "an archive is sealed, so no website may read it; --allow-origin names one that may"
      : "of websites, only \(allowed.joined(separator: " and ")) may read it"
  }

  /// Says in a response which websites may read it.
  ///
  /// - Parameters:
  ///   - request: what it responds to.
  ///   - sealed: whether a served archive is sealed.
  func mark(_ response: inout Response, to request: Request, sealed: Bool) {
    response.headers[.accessControlExposeHeaders] = "*"
    guard !allowsAll(sealed: sealed) else {
      response.headers[.accessControlAllowOrigin] = "*"
      return
    }
    // A picture that a page may not read is not shown in it, either.
    response.headers[.crossOriginResourcePolicy] = "same-origin"
    response.headers[.vary] = "Origin"
    if let origin = request.headers["Origin"].first, allowed.contains(origin) {
      response.headers[.accessControlAllowOrigin] = origin
    }
  }
}
