internal import ATProtocol
internal import HTTP
internal import IPLD

/// Credentials that a machine lends to what runs on it: a container's, or an instance's.
///
/// These services are the one place where link-local addresses are asked, and only at the addresses
/// that Amazon documents.
extension CredentialSearch {
  /// The addresses that a container's service may have, beside this machine's own.
  private static let containerHosts = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"]
  /// The addresses that an instance's service may have.
  private static let instanceHosts = ["169.254.169.254", "fd00:ec2::254"]
  private static let longestAnswer = 64 << 10

  /// What the container lends; nil if there is none.
  ///
  /// - Throws: ``StoreError`` if its service cannot be used.
  func fromContainer() async throws -> StoreCredentials? {
    let url: String
    if let path = options.environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
      url = "http://\(Self.containerHosts[0])\(path)"
    } else if let full = options.environment("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
      url = full
    } else {
      return nil
    }
    try permit(url, Self.containerHosts, "AWS_CONTAINER_CREDENTIALS_FULL_URI")
    var fields = [(name: "Accept", value: "application/json")]
    if let token = try containerToken() { fields.append(("Authorization", token)) }
    let (status, body) = try await ask(.get, url, fields, seconds: 5)
    guard status == 200, let found = Self.credentials(in: body) else {
      throw StoreError(
        .noCredentials, "the container's service has no credentials (status \(status))")
    }
    return found
  }

  private func containerToken() throws -> String? {
    guard let path = options.environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") else {
      return options.environment("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    }
    do {
      return try Self.text(of: path).split(whereSeparator: \.isNewline).first.map(String.init)
    } catch {
      throw StoreError(
        .noCredentials, "could not read \(path) (AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE): \(error)")
    }
  }

  /// Asks the instance's service, in its second version only; nil if there is none.
  func fromInstance() async throws -> StoreCredentials? {
    guard options.environment("AWS_EC2_METADATA_DISABLED")?.lowercased() != "true" else {
      return nil
    }
    let variable = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
    var base = options.environment(variable) ?? "http://\(Self.instanceHosts[0])"
    if base.hasSuffix("/") { base.removeLast() }
    try permit(base, Self.instanceHosts, variable)
    do {
      let (status, token) = try await ask(
        .put, "\(base)/latest/api/token", [("X-aws-ec2-metadata-token-ttl-seconds", "300")],
        seconds: 1)
      guard status == 200 else { return nil }
      let fields = [
        (name: "X-aws-ec2-metadata-token", value: String(decoding: token, as: UTF8.self))
      ]
      let roles = "\(base)/latest/meta-data/iam/security-credentials/"
      let (found, names) = try await ask(.get, roles, fields, seconds: 5)
      let role = String(decoding: names, as: UTF8.self).split(whereSeparator: \.isNewline).first
      guard found == 200, let role else { return nil }
      let (last, body) = try await ask(
        .get, roles + HTTPURL.escaped(String(role)), fields, seconds: 5)
      return last == 200 ? Self.credentials(in: body) : nil
    } catch let error as StoreError where error.kind == .unavailable {
      // No such service: this is not an instance.
      return nil
    }
  }

  /// Refuses an address that is neither this machine nor one of those that are documented.
  private func permit(_ url: String, _ hosts: [String], _ variable: String) throws {
    do throws(TransportError) {
      let authority = try HTTPURL(url).authority
      guard !authority.isLoopback, !hosts.contains(authority.host) else { return }
    } catch {
      throw StoreError(.noCredentials, "\(variable) cannot be used: \(error.what)")
    }
    throw StoreError(
      .noCredentials,
      "\(variable) leads to \(url), which is neither this machine nor \(hosts.joined(separator: ", "))"
    )
  }

  private func ask(
    _ method: HTTPRequest.Method, _ url: String, _ fields: [(name: String, value: String)],
    seconds: Int
  ) async throws -> (Int, [UInt8]) {
    var network = NetworkOptions(userAgent: userAgent)
    network.plainServers = [url]
    network.attempts = 1
    network.connectSeconds = seconds
    network.stallSeconds = seconds
    let request = HTTPRequest(
      method, url, fields: fields, acceptsCompression: false, followsRedirects: false, attempts: 1)
    do {
      let (delivery, body) = try await Network(network).send(request) { response in
        try await response.body.collect(upTo: Self.longestAnswer, of: url)
      }
      return (delivery.response.status, body ?? [])
    } catch let error as TransportError {
      throw StoreError(.unavailable, "the service that lends credentials: \(error)")
    }
  }

  /// The credentials that an answer holds; nil if it holds none.
  private static func credentials(in json: [UInt8]) -> StoreCredentials? {
    // What is not JSON holds none.
    guard case .map(let map)? = try? DataModelJSON.decode(json) else { return nil }
    func text(_ name: String) -> String? {
      if case .string(let text)? = map[name], !text.isEmpty { text } else { nil }
    }
    guard let key = text("AccessKeyId"), let secret = text("SecretAccessKey") else { return nil }
    return StoreCredentials(
      key: key, secret: Secret(secret), sessionToken: text("Token").map(Secret.init),
      end: text("Expiration").flatMap { UnixTime($0) })
  }
}
