internal import CCurl

/// Where connections may be made to, and how: the user's settings, for everything that uses
/// libcurl.
struct ConnectionRules: Sendable {
  /// Which addresses may be connected to.
  let policy: AddressPolicy
  /// What all connections have in common.
  let settings: CurlSettings
  private let proxies: ProxySettings

  /// The rules that follow from what the user set.
  ///
  /// - Parameters:
  ///   - options: what the user set.
  ///   - policy: which addresses may be connected to.
  ///   - environment: what may name a proxy.
  /// - Throws: ``TransportError`` if a pin cannot be used.
  init(
    _ options: NetworkOptions, policy: AddressPolicy,
    environment: [String: String] = ProxySettings.environment
  ) throws(TransportError) {
    let pins = try options.hostPins.map { pin throws(TransportError) in try HostPin(pin) }
    self.policy = policy
    settings = CurlSettings(
      userAgent: options.userAgent, caFile: options.caFile, resolve: pins.map(\.resolveEntry),
      stallSeconds: max(1, options.stallSeconds), connectSeconds: options.connectSeconds)
    proxies = ProxySettings(
      environment: environment, pinned: Set(pins.map(\.authority)), observer: options.observer)
  }

  /// A connection to a URL's server.
  ///
  /// - Throws: ``TransportError`` if it can be seen to be refused before anything is looked up or
  ///   connected to.
  func target(_ url: HTTPURL, isRedirected: Bool = false) throws(TransportError) -> ConnectionTarget
  {
    guard policy.permits(url, isRedirected: isRedirected) else {
      guard !isRedirected else { throw TransportError(.refusedRedirect("\(url)"), url: "\(url)") }
      let host = url.authority
      // With a public address over http, the scheme is wrong.
      throw TransportError(
        host.isPrivate ? .refusedAddress(host.address.map { "\($0)" } ?? host.host) : .unusableURL,
        url: "\(url)")
    }
    return ConnectionTarget(
      url: url, policy: policy, isRedirected: isRedirected, proxy: proxies.proxy(for: url),
      settings: settings)
  }
}

/// A connection to be made, and what has been decided about it.
struct ConnectionTarget: Sendable {
  let url: HTTPURL
  let policy: AddressPolicy
  /// Whether a server of another origin pointed there.
  let isRedirected: Bool
  let proxy: String?
  var settings: CurlSettings

  /// An error about it.
  func error(_ reason: TransportError.Reason) -> TransportError {
    TransportError(reason, url: "\(url)")
  }
}

extension CurlEasy {
  /// Sets everything about the connection: destination, protocols, pins, proxy and certificates.
  func configure(_ target: ConnectionTarget) {
    set(CURLOPT_URL, target.url.text)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    // One answer for each connection: the system holds a server up whose body is not read, and none
    // gets into the way of others, as they do in HTTP/2, where one
    // server's empty frames have kept the event thread busy for as long as they came.
    set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
    set(CURLOPT_USERAGENT, target.settings.userAgent)
    // Signals belong to the program, and a name that is being looked up must not hold up what ends
    // a transfer.
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_CONNECTTIMEOUT, target.settings.connectSeconds)
    if let caFile = target.settings.caFile { set(CURLOPT_CAINFO, caFile) }
    if !target.settings.resolve.isEmpty { set(CURLOPT_RESOLVE, target.settings.resolve) }
    // Which proxy there is, if any, has been decided: the environment is not asked again.
    set(CURLOPT_PROXY, target.proxy ?? "")
    set(CURLOPT_NOPROXY, "")
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
  }
}
