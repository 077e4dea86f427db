internal import IPLD

/// The messages of a WebSocket, which blocks in a queue of its own: a wait here ends as soon as its
/// task is cancelled.
package actor WebSocketStream {
  private let queue = OwnQueue("web socket")
  private let url: String
  private let socket: WebSocket
  /// Whether the server was asked whether it is there, and has not answered yet.
  private var isAsked = false

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe queue.asUnownedSerialExecutor()
  }

  /// A stream that is not open yet.
  ///
  /// - Parameters:
  ///   - origin: the server.
  ///   - path: what is requested, with the query.
  ///   - url: what errors call it.
  ///   - options: what the user set.
  /// - Throws: ``TransportError`` if it cannot be requested.
  package init(
    _ origin: String, path: String, called url: String, _ options: NetworkOptions
  ) throws(TransportError) {
    self.url = url
    socket = try WebSocket(origin, path: path, options)
  }

  /// Connects.
  ///
  /// - Throws: ``TransportError``; what ends with the task.
  package func open() async throws {
    try await withTaskCancellationHandler {
      try socket.open()
    } onCancel: {
      socket.cancel()
    }
  }

  /// The next message; nil if none came in this many seconds.
  ///
  /// A server that is silent for long is asked whether it is there, and has to answer.
  ///
  /// - Parameters:
  ///   - seconds: how long a message is waited for.
  ///   - silence: after how many seconds of silence the server is asked, and after how many the
  ///     connection is given up.
  /// - Throws: ``TransportError``; what ends with the task.
  package func next(waiting seconds: Double, _ silence: (ping: Int, end: Int)) async throws
    -> [UInt8]?
  {
    let message = try await withTaskCancellationHandler {
      try socket.next(waiting: seconds)
    } onCancel: {
      socket.cancel()
    }
    let silent = socket.heard.duration(to: .now)
    guard silent < .seconds(silence.end) else {
      throw TransportError(.stalled(seconds: silence.end), url: url)
    }
    if silent < .seconds(silence.ping) {
      isAsked = false
    } else if !isAsked {
      socket.ping()
      isAsked = true
    }
    return message
  }
}
