/// The answer to one request, as a handler of a ``LoopbackServer`` writes it: all at once, or in
/// pieces and as badly as a test needs.
///
/// It belongs to the thread of its connection, and is of no use after the handler has returned.
package final class LoopbackResponse {
  /// How the end of a body is marked.
  package enum Framing: Sendable, Hashable {
    /// By `Content-Length`.
    case length
    /// In chunks.
    case chunked
    /// By the end of the connection.
    case connection
  }

  /// The connection is gone, or the server has been stopped: the handler need not continue.
  package struct Gone: Error {}

  /// The status.
  package var status = 200
  /// Header fields beside those that say how long the body is.
  package var fields: [(name: String, value: String)] = []
  /// What happens to the body on its way.
  package var distortion: Distortion?
  /// Is called in the answer's stead, which does not come, when the handler has done its work.
  package var withheld: (() -> Void)?
  /// What the log says about the answer.
  package var fault: String?

  /// How many bytes of the body the system has taken.
  package private(set) var bytesSent = 0
  /// Whether the answer was sent to its end, undistorted.
  package private(set) var isWhole = false
  private(set) var hasBegun = false
  private(set) var hasEnded = false
  /// Whether no other answer can follow on this connection.
  private(set) var endsConnection = false
  private(set) var resetsConnection = false

  /// Up to this length a piece of a body is copied, so that it goes out together with what is
  /// around it.
  private static let smallPiece = 16 << 10

  private let socket: Socket
  private let isHead: Bool
  private let isStopped: @Sendable () -> Bool
  private var framing = Framing.length
  /// How many bytes of body there are going to be.
  private var length = 0
  /// How many bytes of the body the handler has written.
  private var written = 0
  /// Where in the body the distortion is.
  private var place = Int.max
  /// The head, until it is sent with the first piece of the body: a small answer is one segment.
  private var head: [UInt8] = []

  init(
    socket: Socket, request: LoopbackRequest, isStopped: @escaping @Sendable () -> Bool
  ) {
    self.socket = socket
    self.isStopped = isStopped
    isHead = request.method == "HEAD"
    endsConnection = request["connection"]?.lowercased() == "close"
  }

  /// Sends a whole answer.
  package func send(_ body: [UInt8] = [], type: String? = nil, framing: Framing = .length) throws {
    if let type { fields.append(("Content-Type", type)) }
    try begin(length: body.count, framing: framing)
    try write(body.span)
    try end()
  }

  /// Sends a whole answer of text.
  package func send(_ text: String, type: String = "text/plain; charset=utf-8") throws {
    try send(Array(text.utf8), type: type)
  }

  /// Sends the head.
  ///
  /// - Parameters:
  ///   - length: how many bytes of body will follow.
  ///   - framing: how their end is marked for the client.
  package func begin(length: Int, framing: Framing = .length) throws {
    precondition(!hasBegun, "an answer has one head")
    if let withheld {
      withheld()
      try pauseForEver()
    }
    hasBegun = true
    self.framing = framing
    self.length = length
    var announced = length
    switch distortion {
    case .cut(let part)?, .reset(let part)?, .stalled(let part)?:
      place = min(length, Int(Double(length) * part))
    case .cutAfter(let bytes)?: place = bytes < length ? bytes : Int.max
    case .shortened(let part)?:
      place = min(max(0, length - 1), Int(Double(length) * part))
      announced = place
    case .corrupted(let part)?: place = min(max(0, length - 1), Int(Double(length) * part))
    case .misannounced(let difference)?:
      announced = max(0, length + difference)
      self.framing = .length
    case .endless?: announced = Int.max
    case .dripping?, nil: break
    }
    switch self.framing {
    case .length: fields.append(("Content-Length", "\(announced)"))
    case .chunked: fields.append(("Transfer-Encoding", "chunked"))
    case .connection: endsConnection = true
    }
    if endsConnection { fields.append(("Connection", "close")) }
    var text = "HTTP/1.1 \(status) \(Self.reason(status))\r\n"
    for field in fields { text += "\(field.name): \(field.value)\r\n" }
    head = Array((text + "\r\n").utf8)
  }

  /// Sends a piece of the body.
  package func write(_ bytes: Span<UInt8>) throws {
    precondition(hasBegun && !hasEnded, "a body comes after the head")
    defer { written += bytes.count }
    if isHead || bytes.isEmpty { return }
    guard let distortion else { return try transmit(bytes) }
    let before = max(0, min(bytes.count, place - written))
    switch distortion {
    case .cut, .cutAfter, .reset, .stalled:
      try transmit(bytes.extracting(0..<before))
      if before < bytes.count { try stopShort(distortion) }
    case .shortened: try transmit(bytes.extracting(0..<before))
    case .corrupted:
      guard place >= written, before < bytes.count else { return try transmit(bytes) }
      var copy: [UInt8] = []
      copy.append(addingCapacity: bytes.count) { output in
        for index in bytes.indices { output.append(bytes[index]) }
      }
      copy[before] ^= 1
      try transmit(copy.span)
    case .dripping(let rate):
      let piece = max(1, rate / 20)
      for start in stride(from: 0, to: bytes.count, by: piece) {
        let end = min(start + piece, bytes.count)
        try transmit(bytes.extracting(start..<end))
        // After the last byte the client may well be gone.
        if written + end < length { try pause(Double(piece) / Double(rate)) }
      }
    case .misannounced, .endless: try transmit(bytes)
    }
  }

  /// Ends the body.
  package func end() throws {
    precondition(hasBegun && !hasEnded, "a body comes after the head")
    switch distortion {
    case .cut?, .reset?, .stalled?: if let distortion, !isHead { try stopShort(distortion) }
    case .cutAfter? where place < length: if let distortion, !isHead { try stopShort(distortion) }
    case .misannounced(let difference)?:
      // A client that was promised more waits for it; one that was promised less leaves bytes
      // unread.
      if difference != 0 { endsConnection = true }
    case .endless?: if !isHead { try sendZerosForEver() }
    case .cutAfter?, .shortened?, .corrupted?, .dripping?, nil: break
    }
    try flush()
    if framing == .chunked && !isHead { try sendRaw(Array("0\r\n\r\n".utf8)) }
    hasEnded = true
    switch distortion {
    case nil, .cutAfter?, .dripping?: isWhole = true
    default: isWhole = false
    }
  }

  /// Sends what has been held back: a head whose body is late.
  package func flush() throws {
    guard !head.isEmpty else { return }
    let bytes = head
    head = []
    try sendRaw(bytes)
  }

  /// Sends bytes as they are, whatever HTTP says: heads that are none, heads without an end.
  package func sendRaw(_ bytes: [UInt8]) throws {
    hasBegun = true
    guard socket.send(bytes.span) == bytes.count else {
      endsConnection = true
      throw Gone()
    }
  }

  /// Lets time go by.
  ///
  /// - Throws: ``Gone`` if meanwhile the client has given up or the server has been stopped.
  package func pause(_ seconds: Double) throws {
    try flush()
    let clock = ContinuousClock()
    let end = clock.now + .seconds(seconds)
    while true {
      let left = end - clock.now
      guard left > .zero else { return }
      let milliseconds = min(50, max(1, Int32((left / .milliseconds(1)).rounded(.up))))
      if isStopped() || socket.hasHungUp(within: milliseconds) {
        endsConnection = true
        throw Gone()
      }
    }
  }

  /// Waits until the client gives up.
  package func pauseForEver() throws {
    while true { try pause(3600) }
  }

  /// Ends the connection, now or after what has been sent.
  package func close() {
    endsConnection = true
    hasEnded = true
  }

  /// Breaks the connection with a reset.
  package func reset() {
    resetsConnection = true
    close()
  }

  private func stopShort(_ distortion: Distortion) throws {
    try flush()
    switch distortion {
    case .reset: reset()
    case .stalled: try pauseForEver()
    default: close()
    }
    throw Gone()
  }

  private func sendZerosForEver() throws {
    let zeros = [UInt8](repeating: 0, count: 64 << 10)
    while !isStopped() { try transmit(zeros.span) }
    throw Gone()
  }

  private func transmit(_ bytes: Span<UInt8>) throws {
    if bytes.isEmpty { return }
    if framing == .chunked { head += Array("\(String(bytes.count, radix: 16))\r\n".utf8) }
    if bytes.count <= Self.smallPiece {
      for index in bytes.indices { head.append(bytes[index]) }
      if framing == .chunked { head += [13, 10] }
      try flush()
      bytesSent += bytes.count
    } else {
      try flush()
      let sent = socket.send(bytes)
      bytesSent += sent
      guard sent == bytes.count else {
        endsConnection = true
        throw Gone()
      }
      if framing == .chunked { try sendRaw([13, 10]) }
    }
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 206: "Partial Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 308: "Permanent Redirect"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 416: "Range Not Satisfiable"
    case 429: "Too Many Requests"
    case 500: "Internal Server Error"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    default: "Status"
    }
  }
}
