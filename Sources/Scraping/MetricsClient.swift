internal import LibC

/// A client of a ``MetricsServer``, and how far its request or its answer is.
struct MetricsClient {
  /// Its socket, which does not block; the owner of the client closes it.
  let descriptor: CInt
  /// Until when all has to be done.
  let end = ContinuousClock.now + Self.patience
  /// Whether it has got its answer, or is gone.
  private(set) var isOver = false

  private var request: [UInt8] = []
  private var answer: ArraySlice<UInt8>?

  /// How much of a request is read, in bytes.
  private static let longestRequest = 4096
  /// How long a request and its answer may take.
  private static let patience: Duration = .seconds(5)

  init(_ descriptor: CInt) { self.descriptor = descriptor }

  /// The events to wait for, as `poll` has them.
  var events: CShort { CShort(answer == nil ? POLLIN : POLLOUT) }

  /// Reads or writes as much as possible without waiting.
  mutating func go(_ text: MetricsServer.Answer) {
    if answer == nil { read(text) }
    if answer != nil, !isOver { write() }
  }

  private mutating func read(_ text: MetricsServer.Answer) {
    var buffer = [UInt8](repeating: 0, count: Self.longestRequest)
    let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else {
      isOver = count == 0 || !Self.isForLater(errno)
      return
    }
    request += buffer[..<count]
    // To its end, so that the client is not cut off before it has read the answer.
    guard request.suffix(4).elementsEqual("\r\n\r\n".utf8) || request.count >= Self.longestRequest
    else { return }
    let line = String(decoding: request.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    let words = line.split(separator: " ", omittingEmptySubsequences: false)
    let isAsked = words.count == 3 && words[0] == "GET" && words[2].hasPrefix("HTTP/1.")
    let (status, body) =
      (isAsked ? text(String(words[1])) : nil)
      ?? ("404 Not Found", "not found: this server has only /metrics and /healthz\n")
    let head = """
      HTTP/1.1 \(status)\r
      Content-Type: text/plain; version=0.0.4; charset=utf-8\r
      Content-Length: \(body.utf8.count)\r
      Connection: close\r
      \r

      """
    answer = Array((head + body).utf8)[...]
  }

  private mutating func write() {
    #if canImport(Darwin)
      let noSignal: CInt = 0
    #else
      let noSignal = CInt(MSG_NOSIGNAL)
    #endif
    while let rest = answer, !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { bytes in
        unsafe send(descriptor, bytes.baseAddress, bytes.count, noSignal)
      }
      guard count > 0 else {
        isOver = !Self.isForLater(errno)
        return
      }
      answer = rest.dropFirst(count)
    }
    isOver = true
  }

  private static func isForLater(_ code: CInt) -> Bool {
    [EAGAIN, EWOULDBLOCK, EINTR].contains(code)
  }
}
