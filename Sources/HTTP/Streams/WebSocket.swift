/// A WebSocket that is read from: libcurl makes the connection, with TLS, and the rest is done
/// here, because the libcurl of many systems does not support WebSockets.
///
/// ``open()`` and ``next(waiting:)`` block, each for a limited time, whatever the server does; all
/// but ``cancel()`` is called by one thread at a time.
///
/// Source: RFC 6455.
package final class WebSocket: @unchecked Sendable {
  private let target: ConnectionTarget
  private let path: String
  private let connection: StreamConnection
  private var frames = WebSocketFrames()
  /// When the server last showed that it is there: by a whole frame.
  package private(set) var heard = ContinuousClock.now

  // What is to be sent. It is sent when the server reads it, and nothing waits for that: what has
  // begun to go out, and after it at most one answer and one question.
  private var outgoing: [UInt8] = []
  private var sent = 0
  private var sendDeadline = ContinuousClock.now
  private var answer: [UInt8]?
  private var question: [UInt8]?

  /// A WebSocket that is not open yet.
  ///
  /// - Parameters:
  ///   - origin: the server, as a URL of `https` or `http`, without a path.
  ///   - path: what is requested.
  ///   - options: what the user set about the network; of a server that is not on the public
  ///     internet, they have to say that the user has named it.
  /// - Throws: ``TransportError`` if an option cannot be used, or the server may not be asked.
  package convenience init(_ origin: String, path: String, _ options: NetworkOptions)
    throws(TransportError)
  {
    try self.init(
      origin, path: path, ConnectionRules(options, policy: try AddressPolicy(options)))
  }

  init(_ origin: String, path: String, _ rules: ConnectionRules) throws(TransportError) {
    target = try rules.target(try HTTPURL(origin))
    self.path = path
    connection = try StreamConnection(target)
  }

  /// Connects, and has the server open it.
  ///
  /// - Throws: ``TransportError`` if the server is not reached, does not answer in time, or answers
  ///   otherwise; `CancellationError`.
  package func open() throws {
    try connection.connect()
    var opening = WebSocketOpening()
    enqueue(
      opening.request(
        path: path, host: target.url.authority.text(defaultPort: target.url.isSecure ? 443 : 80),
        userAgent: target.settings.userAgent))
    let seconds = min(target.settings.stallSeconds, CurlSettings.shortTotalSeconds)
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      try flush()
      if let bytes = try connection.receive() {
        if let rest = try orMalformed({ () throws(WebSocketError) in try opening.take(bytes) }) {
          frames.take(rest)
          heard = .now
          return
        }
      } else {
        try connection.wait(toSend: isSending, until: deadline)
      }
      guard .now < deadline else { throw target.error(.tooSlow(seconds: seconds)) }
    }
  }

  /// Ends what is waited for now, and everything that is asked of it later, by
  /// `CancellationError`; from any thread.
  package func cancel() { connection.cancel() }

  /// The next message; nil if none came in this many seconds.
  ///
  /// - Throws: ``TransportError`` if the connection has ended, what came is malformed, or the
  ///   server does not read the replies; `CancellationError`.
  package func next(waiting seconds: Double) throws -> [UInt8]? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      try connection.checkCancellation()
      let message = try orMalformed { () throws(WebSocketError) in try frames.next() }
      if message != nil { heard = .now }
      switch message {
      case .message(let bytes): return bytes
      // The newest is answered, if there are several (section 5.5.3).
      case .ping(let payload): answer = WebSocketFrames.control(10, payload)
      case .pong: break
      case .close(let why):
        let reason = why.isEmpty ? "" : ": \(Excerpt.of(why))"
        throw target.error(.cutOff("the server has closed the stream\(reason)"))
      case nil:
        try flush()
        if let bytes = try connection.receive() {
          frames.take(bytes)
        } else {
          try connection.wait(toSend: isSending, until: deadline)
        }
      }
      guard .now < deadline else { return nil }
    }
  }

  /// Asks whether the server is there: it has to answer something.
  ///
  /// The question goes out with the next call of ``next(waiting:)``.
  package func ping() { question = WebSocketFrames.control(9) }

  private func orMalformed<Value>(_ body: () throws(WebSocketError) -> Value) throws(TransportError)
    -> Value
  {
    do throws(WebSocketError) {
      return try body()
    } catch {
      throw target.error(.malformedAnswer(error.why))
    }
  }

  // MARK: Sending

  private var isSending: Bool { sent < outgoing.count }

  private func enqueue(_ bytes: [UInt8]) {
    (outgoing, sent) = (bytes, 0)
    sendDeadline = .now + .seconds(target.settings.stallSeconds)
  }

  /// Sends what there is room for, without waiting.
  private func flush() throws(TransportError) {
    while true {
      if !isSending {
        guard let frame = answer.take() ?? question.take() else { return }
        enqueue(frame)
      }
      let count = try connection.send(outgoing, from: sent)
      sent += count
      guard count == 0 else { continue }
      guard .now < sendDeadline else {
        let seconds = target.settings.stallSeconds
        throw target.error(.cutOff("the server has read nothing for \(seconds) seconds"))
      }
      return
    }
  }
}
