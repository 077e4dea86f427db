internal import CCurl

/// What all transfers of a transport have in common.
struct CurlSettings: Sendable {
  var userAgent: String
  var caFile: String?
  /// Pins, as `CURLOPT_RESOLVE` wants them.
  var resolve: [String]
  var stallSeconds: Int
  /// How long it may take until there is a connection, TLS included.
  var connectSeconds: Int

  /// Within how many seconds a short answer has to be complete, without the time to connect; nil
  /// for a long one.
  var totalSeconds: Int?

  /// A transfer that brings fewer bytes a second than this, over the time of a stall, counts as
  /// stalled: on the slowest lines sixteen at a time bring more.
  static let leastBytesPerSecond = 256
  /// How much is read at once.
  static let bufferSize = 128 << 10
  /// How much is read at once of what is compressed: libcurl keeps what a paused transfer's piece
  /// decompresses to, which may be a thousand times as much.
  static let compressedBufferSize = 16 << 10
  /// How much of a long body is sent at once.
  static let uploadBufferSize = 64 << 10
  /// How much libcurl hands over at once (`CURL_MAX_WRITE_SIZE`).
  static let longestWrite = 16 << 10
  /// How long nothing may arrive of an answer that the server need not prepare, as it may have to
  /// prepare a repository.
  static let shortStallSeconds = 20
  /// How long all of a short answer may take.
  static let shortTotalSeconds = 30

  /// The settings for a request.
  func adapted(to request: HTTPRequest) -> CurlSettings {
    var settings = self
    if !request.isPrepared { settings.stallSeconds = min(stallSeconds, Self.shortStallSeconds) }
    if let patience = request.patience { settings.stallSeconds = max(stallSeconds, patience) }
    if !request.isStreamed { settings.totalSeconds = Self.shortTotalSeconds }
    if let left = request.secondsLeft {
      settings.connectSeconds = min(connectSeconds, left)
      settings.totalSeconds = min(settings.totalSeconds ?? left, left)
    }
    return settings
  }
}

extension CurlEasy {
  /// Sets a transfer's request, and how long it may take; not the connection, and no callbacks.
  func configure(for request: HTTPRequest, _ settings: CurlSettings) {
    if request.wantsNewConnection { set(CURLOPT_FRESH_CONNECT, 1) }
    // libcurl does not count the time that a transfer is paused.
    set(CURLOPT_LOW_SPEED_LIMIT, CurlSettings.leastBytesPerSecond)
    set(CURLOPT_LOW_SPEED_TIME, settings.stallSeconds)
    if let total = settings.totalSeconds {
      set(CURLOPT_TIMEOUT, min(settings.connectSeconds + total, request.secondsLeft ?? .max))
    }

    var fields = request.fields.map { name, value in
      // An empty value is written with a semicolon; with a colon it would take the field away.
      value.isEmpty ? "\(name);" : "\(name): \(value)"
    }
    if request.offset > 0 { set(CURLOPT_RANGE, "\(request.offset)-") }
    // A part of what is compressed could not be decompressed.
    let isCompressed = request.acceptsCompression && request.offset == 0
    if isCompressed { set(CURLOPT_ACCEPT_ENCODING, "gzip, deflate") }
    set(
      CURLOPT_BUFFERSIZE,
      isCompressed ? CurlSettings.compressedBufferSize : CurlSettings.bufferSize)
    switch request.method {
    case .get: break
    case .head: set(CURLOPT_NOBODY, 1)
    case .delete: set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
    case .post, .put:
      set(CURLOPT_POST, 1)
      // The body of a PUT is sent like that of a POST.
      set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
      setBody(request.body)
      set(CURLOPT_UPLOAD_BUFFERSIZE, CurlSettings.uploadBufferSize)
      fields.append("Expect:")
      if !request.fields.contains(where: { $0.name.lowercased() == "content-type" }) {
        fields.append("Content-Type:")
      }
    }
    set(CURLOPT_HTTPHEADER, fields)
  }
}
