import ATProtocol
import NIOHTTP1

/// Routes every request to what answers it, and counts it.
struct Responder {
  let endpoints: Endpoints
  let pages: Pages
  let hosts: BoundHosts
  let origins: OriginRule
  let options: ServerOptions
  let metrics: Metrics?
  let log: AccessLog?

  func respond(to request: Request, from client: String) async -> Response {
    let start = ContinuousClock.now
    let (response, endpoint) = await answer(request)
    if metrics != nil || log != nil {
      let elapsed = ContinuousClock.now - start
      let seconds =
        Double(elapsed.components.attoseconds) / 1e18 + Double(elapsed.components.seconds)
      let bytes = request.method == .HEAD ? 0 : response.length ?? 0
      let status = Int(response.status.code)
      metrics?.count(endpoint, status, bytes: bytes, seconds: seconds)
      // A reader of the log must not learn how to read the archives.
      let target = request.target.replacing(pages.token, with: "TOKEN")
      log?.note(
        client, request.method.rawValue, target, status, bytes: bytes, seconds: seconds)
    }
    return response
  }

  private func answer(_ request: Request) async -> (Response, endpoint: String) {
    let (path, authority) = (request.path, request.authority)
    if path == "/.well-known/atproto-did", options.offer == .everything, request.isReading {
      return (wellKnown(authority), "atproto-did")
    }
    guard hosts.allows(authority) else {
      let message = "This server does not answer to that name; --hostname adds a name.\n"
      return (.text(message, status: .misdirectedRequest), "other")
    }
    do {
      return try await dispatch(path, request, origin: origin(authority))
    } catch {
      return (XRPCFault(error).response, "error")
    }
  }

  private func dispatch(_ path: String, _ request: Request, origin: String) async throws -> (
    Response, endpoint: String
  ) {
    let secret = "/\(pages.token)/"
    if path.hasPrefix(secret) {
      guard request.isReading else { return (.notAllowed, "page") }
      return try await withTaskExecutorPreference(endpoints.threads) {
        (try pages.answer(path.dropFirst(secret.count), request), "page")
      }
    }
    if path == secret.dropLast() {
      return (Response(status: .seeOther, headers: ["Location": secret]), "page")
    }
    if path == "/metrics", let metrics, request.isReading {
      let text = metrics.text(
        archives: endpoints.shelf.archives.count, accounts: endpoints.shelf.accounts.count,
        jobs: endpoints.threads.counts)
      return (.bytes(Array(text.utf8), type: "text/plain; version=0.0.4"), "metrics")
    }
    guard options.offer == .everything else { return (.nothing, "other") }
    if path.hasPrefix("/xrpc/") {
      return await xrpc(String(path.dropFirst(6)), request, origin: origin)
    }
    if let path = Directory.path(in: path), request.isReading {
      return try await withTaskExecutorPreference(endpoints.threads) {
        (try endpoints.directory.answer(path, origin: origin), "did")
      }
    }
    if path == "/", request.isReading {
      let text =
        "A read-only archive of AT Protocol accounts.\n\nThe API is under /xrpc/.\n"
      return (.text(text), "root")
    }
    return (.nothing, "other")
  }

  private func xrpc(_ method: String, _ request: Request, origin: String) async -> (
    Response, endpoint: String
  ) {
    let endpoint = Endpoints.names.contains(method) ? method : "other"
    var response: Response
    if request.method == .OPTIONS {
      response = Response(status: .noContent)
      response.headers[.accessControlAllowMethods] = "GET, HEAD, OPTIONS"
      response.headers[.accessControlAllowHeaders] = "*, Authorization"
      response.headers[.accessControlMaxAge] = "86400"
    } else {
      do {
        guard request.isReading else { throw Endpoints.notHere(method) }
        response = try await endpoints.answer(method, request, origin: origin)
      } catch {
        response = XRPCFault(error).response
      }
    }
    origins.mark(&response, to: request, sealed: endpoints.shelf.holdsSealed)
    return (response, endpoint)
  }

  /// The DID of the account whose handle the request is addressed to.
  private func wellKnown(_ authority: String?) -> Response {
    guard let handle = authority.flatMap(HostRule.host),
      let account = endpoints.shelf.account(handle)
    else { return .nothing }
    return .text(account.did.text)
  }

  /// The origin by which the server was addressed, and can be again.
  private func origin(_ authority: String?) -> String {
    for hostname in options.hostnames where hostname.hasPrefix("http") {
      return hostname.hasSuffix("/") ? String(hostname.dropLast()) : hostname
    }
    return "http://\(authority ?? "localhost")"
  }
}

extension Response {
  fileprivate static var nothing: Response { .text("Not found.\n", status: .notFound) }
  fileprivate static var notAllowed: Response {
    .text("This server only reads archives.\n", status: .methodNotAllowed)
  }
}
