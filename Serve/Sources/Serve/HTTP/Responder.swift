import ATProtocol
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// What is known of a request beside what it says.
struct ClientContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// From where it came.
  let client: String
  /// The connection.
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
    client = source.channel.remoteAddress?.ipAddress ?? "-"
  }
}

/// Leads every request to what answers it, and counts it.
struct Responder: HTTPResponder {
  let endpoints: Endpoints
  let pages: Pages
  let hosts: BoundHosts
  let options: ServerOptions
  let metrics: Metrics?
  let log: AccessLog?

  func respond(to request: Request, context: ClientContext) async throws -> Response {
    let start = ContinuousClock.now
    let path = request.uri.path
    var (response, endpoint) = await ClientConnection.$channel.withValue(context.channel) {
      await answer(path, request)
    }
    response =
      request.method == .head ? response.createHeadResponse() : response.paced(on: context.channel)
    if metrics != nil || log != nil {
      let elapsed = ContinuousClock.now - start
      let seconds =
        Double(elapsed.components.attoseconds) / 1e18 + Double(elapsed.components.seconds)
      let bytes = request.method == .head ? 0 : response.body.contentLength ?? 0
      metrics?.count(endpoint, response.status.code, bytes: bytes, seconds: seconds)
      // Who reads the log is not thereby told how to read the archives.
      let target = request.uri.string.replacing(pages.token, with: "TOKEN")
      log?.note(
        context.client, "\(request.method)", target, response.status.code, bytes: bytes,
        seconds: seconds)
    }
    return response
  }

  private func answer(_ path: String, _ request: Request) async -> (Response, endpoint: String) {
    let authority = request.head.authority
    if path == "/.well-known/atproto-did", options.offer == .everything, request.isReading {
      return (wellKnown(authority), "atproto-did")
    }
    guard hosts.allows(authority) else {
      let message = "This server does not go by that name; --hostname lets it.\n"
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
      return (Response(status: .seeOther, headers: [.location: secret]), "page")
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
    if path.hasPrefix("/did/"), request.isReading {
      return try await withTaskExecutorPreference(endpoints.threads) {
        (try endpoints.directory.answer(path.dropFirst(5), origin: origin), "did")
      }
    }
    if path == "/", request.isReading {
      let text =
        "An archive of AT Protocol accounts, which can be read only.\n\nThe API is under /xrpc/.\n"
      return (.text(text), "root")
    }
    return (.nothing, "other")
  }

  private func xrpc(_ method: String, _ request: Request, origin: String) async -> (
    Response, endpoint: String
  ) {
    let endpoint = Endpoints.names.contains(method) ? method : "other"
    var response: Response
    if request.method == .options {
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
    response.headers[.accessControlAllowOrigin] = "*"
    response.headers[.accessControlExposeHeaders] = "*"
    return (response, endpoint)
  }

  /// The DID of the account whose handle the request is addressed to.
  private func wellKnown(_ authority: String?) -> Response {
    guard let handle = authority.flatMap(HostRule.host),
      let account = endpoints.shelf.account(handle)
    else { return .nothing }
    return .text(account.did.text)
  }

  /// How the server was addressed, and can be again.
  private func origin(_ authority: String?) -> String {
    for hostname in options.hostnames where hostname.hasPrefix("http") {
      return hostname.hasSuffix("/") ? String(hostname.dropLast()) : hostname
    }
    return "http://\(authority ?? "localhost")"
  }
}

extension Request {
  fileprivate var isReading: Bool { method == .get || method == .head }
}

extension Response {
  fileprivate static var nothing: Response { .text("There is nothing here.\n", status: .notFound) }
  fileprivate static var notAllowed: Response {
    .text("This is an archive, which can be read only.\n", status: .methodNotAllowed)
  }
}
