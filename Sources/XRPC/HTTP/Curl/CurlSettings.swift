internal import CCurl

/// What all transfers of a transport have in common.
struct CurlSettings: Sendable {
  var userAgent: String
  var caFile: String?
  /// Pins, as `CURLOPT_RESOLVE` wants them.
  var resolve: [String]
  var stallSeconds: Int
  /// How long it may take until there is a connection, TLS included.
  var connectSeconds = 30

  /// A transfer that brings less than this in a second, over the time of a stall, stands still.
  static let leastBytesPerSecond = 16
  /// How much is read at once.
  static let bufferSize = 128 << 10
  /// How much is read at once of what is compressed: libcurl keeps what a paused transfer's piece decompresses to, which may be a thousand times as much.
  static let compressedBufferSize = 16 << 10
  /// How long nothing may arrive of what is short: a server need not prepare much for it, as it may have to for a repository.
  static let shortStallSeconds = 20

  /// The same, for what is asked.
  func adapted(to request: HTTPRequest) -> CurlSettings {
    guard !request.isStreamed else { return self }
    var settings = self
    settings.stallSeconds = min(stallSeconds, Self.shortStallSeconds)
    return settings
  }
}

extension CurlEasy {
  /// Sets the versions of HTTP and TLS.
  ///
  /// libcurl 7.88 gives a request that is to use HTTP/1.1 an idle connection of HTTP/2, too, and then takes the answer for none ("HTTP/0.9"). It gives none a
  /// connection that was made under other settings of TLS; so these differ, though in words only, and each kind keeps to its own connections.
  private func setVersions(isStreamed: Bool) {
    if isStreamed {
      set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
      set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_3)
    } else {
      set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
      set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
    }
  }

  /// Sets all options of a transfer, but for the callbacks.
  func configure(for order: CurlTransfer.Order) {
    let settings = order.settings
    set(CURLOPT_URL, order.url.text)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    setVersions(isStreamed: order.request.isStreamed)
    set(CURLOPT_USERAGENT, settings.userAgent)
    // Signals belong to the program, and a name that is being looked up must not hold up what ends a transfer.
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_QUICK_EXIT, 1)
    // A request that waited to see whether another's connection can be shared would wait for all of that one's body, and for ever if it is paused (7.88).
    set(CURLOPT_PIPEWAIT, 0)
    set(CURLOPT_CONNECTTIMEOUT, settings.connectSeconds)
    // libcurl does not count the time that a transfer is paused.
    set(CURLOPT_LOW_SPEED_LIMIT, CurlSettings.leastBytesPerSecond)
    set(CURLOPT_LOW_SPEED_TIME, settings.stallSeconds)
    if let caFile = settings.caFile { set(CURLOPT_CAINFO, caFile) }
    if !settings.resolve.isEmpty { set(CURLOPT_RESOLVE, settings.resolve) }
    // Which proxy there is, if any, has been decided: the environment is not asked again.
    set(CURLOPT_PROXY, order.proxy ?? "")
    set(CURLOPT_NOPROXY, "")
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)

    var fields = order.request.fields.map { name, value in
      // An empty value is written with a semicolon; with a colon it would take the field away.
      value.isEmpty ? "\(name);" : "\(name): \(value)"
    }
    if order.offset > 0 { set(CURLOPT_RANGE, "\(order.offset)-") }
    // A part of what is compressed could not be decompressed.
    let isCompressed = order.request.acceptsCompression && order.offset == 0
    if isCompressed { set(CURLOPT_ACCEPT_ENCODING, "gzip, deflate") }
    set(
      CURLOPT_BUFFERSIZE,
      isCompressed ? CurlSettings.compressedBufferSize : CurlSettings.bufferSize)
    if order.request.method == .post {
      set(CURLOPT_POST, 1)
      setBody(order.request.body)
      fields.append("Expect:")
      if !order.request.fields.contains(where: { $0.name.lowercased() == "content-type" }) {
        fields.append("Content-Type:")
      }
    }
    set(CURLOPT_HTTPHEADER, fields)
  }
}
