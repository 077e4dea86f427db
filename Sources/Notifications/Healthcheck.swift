internal import ATProtocol
internal import HTTP
internal import Reports
internal import Terminal

/// Tells a monitoring service how a backup ended, in the way of healthchecks.io: by requesting
/// a URL.
///
/// Success is the URL itself, any other exit status follows after a slash. Nothing else is sent.
/// Anyone with the URL can do the same, so no message and no log has it.
package struct Healthcheck {
  private let origin: String
  private let path: Substring
  private let query: Substring

  /// The time limit for all attempts together, in seconds.
  private static let maximumSeconds = 30.0
  private static let attempts = 3
  /// After how many seconds without a byte an attempt is given up.
  private static let stallSeconds = 10
  /// The longest URL that is accepted.
  private static let maximumLength = 2048
  /// How much of an answer is read: services say "OK".
  private static let maximumAnswer = 256

  /// A check.
  ///
  /// - Throws: ``Failure`` for a URL that is neither https nor on this machine.
  package init(_ url: String) throws {
    do throws(ServerOriginError) {
      let (origin, rest) = try ServerOrigin.split(url)
      self.origin = origin.text
      path = rest.prefix { $0 != "?" }
      query = rest[path.endIndex...]
    } catch {
      throw Self.unusable
    }
    guard url.utf8.count <= Self.maximumLength else { throw Self.unusable }
  }

  private static let unusable = Failure(
    "the URL of the health check cannot be used: it must be https, or http to this machine",
    hint: "it looks like https://hc-ping.com/UUID, with the UUID of the check", status: .usage)

  /// The URL to request.
  func url(for status: ExitStatus) -> String {
    guard status != .success else { return "\(origin)\(path)\(query)" }
    return "\(origin)\(path)\(path.hasSuffix("/") ? "" : "/")\(status.number)\(query)"
  }

  /// Sends the status, and prints a warning if it does not arrive.
  ///
  /// - Returns: The exit status of the signal that ended it; nil if none did.
  func send(_ status: ExitStatus, _ options: NetworkOptions) -> ExitStatus? {
    do {
      let target = url(for: status)
      let given = options
      let why = try runBlocking { try await Self.ask(target, given) }
      if let why { Self.warn(why) }
    } catch let error as TransportError {
      Self.warn(Self.words(error))
    } catch is CancellationError {
      Self.warn("interrupted")
    } catch let signal as ExitStatus {
      Self.warn("interrupted")
      return signal
    } catch {
      Self.warn("the request failed")
    }
    return nil
  }

  private static func warn(_ why: String) {
    Console.say(.warning, "could not report the result to the health check: \(why)")
  }

  /// Requests a URL.
  ///
  /// - Returns: Why the service did not take it; nil if it did.
  /// - Throws: ``TransportError``; `CancellationError`.
  private static func ask(_ url: String, _ given: NetworkOptions) async throws -> String? {
    var options = NetworkOptions(userAgent: given.userAgent)
    options.caFile = given.caFile
    options.hostPins = given.hostPins
    options.namedServers = [url]
    options.stallSeconds = stallSeconds
    options.attempts = attempts
    let network = try Network(options)
    // Where it points to is not what the user named.
    var request = HTTPRequest(.get, url, followsRedirects: false)
    request.seconds = maximumSeconds
    let (delivery, body) = try await network.send(request) {
      try await $0.body.beginning(maximumAnswer)
    }
    guard let body else { return "the service answered with status \(delivery.response.status)" }
    return refusal(String(decoding: body, as: UTF8.self))
  }

  /// Answers of healthchecks.io with status 200 that do not mean success.
  private static func refusal(_ answer: String) -> String? {
    if answer.hasPrefix("OK (not found)") { return "the service knows no such check" }
    if answer.hasPrefix("OK (rate limited)") { return "the service limits requests" }
    return nil
  }

  /// An error without any of the words that may have the URL in them.
  private static func words(_ error: TransportError) -> String {
    switch error.reason {
    case .unknownHost: "its host was not found"
    case .notConnected: "no connection"
    case .notSecure: "no secure connection"
    case .stalled, .tooSlow, .late, .silent: "no answer"
    case .cutOff, .malformedAnswer, .tooLong: "the answer is not HTTP"
    case .refusedAddress, .unusableURL, .unusablePin, .refusedRedirect, .tooManyRedirects:
      "its address is not allowed"
    case .unusableProxy, .proxyRefused: "the proxy refuses, or is set wrongly"
    case .overloaded, .postponed: "the service is overloaded"
    case .unavailable: "libcurl cannot be used"
    }
  }
}
