package import ATProtocol
internal import HTTP
internal import IPLD

/// Signs requests as Amazon's stores, and those that speak as they do, want it: Signature Version
/// 4.
///
/// Source: [Signature Version
/// 4](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html)
/// and, for S3, [Authenticating
/// Requests](https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
package struct RequestSigner: Sendable {
  /// Whose signature it is.
  package let credentials: StoreCredentials
  /// The region that the store is in, such as `eu-central-1`.
  package let region: String
  private static let service = "s3"
  private static let algorithm = "AWS4-HMAC-SHA256"

  /// A signer.
  ///
  /// - Parameters:
  ///   - credentials: Whose signature it is.
  ///   - region: Where the store is.
  package init(_ credentials: StoreCredentials, region: String) {
    (self.credentials, self.region) = (credentials, region)
  }

  /// What is signed.
  package struct Subject: Sendable {
    /// The method, such as `GET`.
    package var method: String
    /// The path as it is sent, its bytes escaped once.
    package var path: String
    /// The names and values of the query, not escaped.
    package var query: [(name: String, value: String)]
    /// The fields, `Host` among them; all of them are signed.
    package var fields: [(name: String, value: String)]
    /// The digest of the body in hexadecimal digits.
    package var payload: String

    /// What is signed.
    package init(
      method: String, path: String, query: [(name: String, value: String)] = [],
      fields: [(name: String, value: String)], payload: String
    ) {
      (self.method, self.path, self.query) = (method, path, query)
      (self.fields, self.payload) = (fields, payload)
    }
  }

  /// The fields that a request has to carry: those given, the time, the digest of the body, the
  /// session's token if there is one, and the signature.
  ///
  /// - Parameters:
  ///   - subject: What is signed.
  ///   - time: When.
  /// - Returns: The fields, `Host` among them.
  package func fields(signing subject: Subject, at time: UnixTime) -> [(
    name: String, value: String
  )] {
    let stamp = "\(time)".filter { $0 != "-" && $0 != ":" }
    let scope = "\(stamp.prefix(8))/\(region)/\(Self.service)/aws4_request"
    var fields =
      subject.fields + [("x-amz-content-sha256", subject.payload), ("x-amz-date", stamp)]
    if let token = credentials.sessionToken {
      fields.append(("x-amz-security-token", token.text))
    }
    // The one form in which both sides sign them: a value has no blanks around it, and one where
    // there were several.
    let signed = fields.map {
      (name: $0.name.lowercased(), value: $0.value.split(separator: " ").joined(separator: " "))
    }.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let names = signed.map(\.name).joined(separator: ";")
    let request = [
      subject.method, subject.path, Self.queryText(subject.query),
      signed.map { "\($0.name):\($0.value)\n" }.joined(), names, subject.payload,
    ].joined(separator: "\n")
    let digest = SHA256.digest(of: Array(request.utf8).span)
    let text = [Self.algorithm, stamp, scope, "\(digest)"].joined(separator: "\n")
    var key = Array("AWS4\(credentials.secret.text)".utf8)
    for part in scope.split(separator: "/") { key = HMAC.code(of: Array(part.utf8), key: key) }
    let signature = Hex.encode(HMAC.code(of: Array(text.utf8), key: key))
    let authorization =
      "\(Self.algorithm) Credential=\(credentials.key)/\(scope), SignedHeaders=\(names), Signature=\(signature)"
    return fields + [("Authorization", authorization)]
  }

  /// A query, its names sorted and everything escaped, as it is signed and as it is sent.
  package static func queryText(_ query: [(name: String, value: String)]) -> String {
    query.map { (HTTPURL.escaped($0.name), HTTPURL.escaped($0.value)) }
      .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
      .map { "\($0)=\($1)" }
      .joined(separator: "&")
  }
}
