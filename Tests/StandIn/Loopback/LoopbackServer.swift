/// An HTTP/1.1 server on 127.0.0.1 for tests: whatever arrives is given to a closure, and
/// everything is written down.
///
/// ```swift
/// let server = try LoopbackServer { request, response in
///   try response.send("you asked for \(request.path)")
/// }
/// defer { server.stop() }
/// ```
///
/// Each connection has a thread, and is kept open from one request to the next. The server stops
/// when it is released.
package final class LoopbackServer: Sendable {
  /// What answers requests; it is called on the thread of the connection.
  package typealias Handler = @Sendable (LoopbackRequest, LoopbackResponse) throws -> Void

  private let listener: LoopbackListener

  /// Starts a server.
  ///
  /// - Parameters:
  ///   - port: where it listens; 0 for a port that is free.
  ///   - settled: called with each exchange when it is complete, on the thread of its connection.
  ///   - handler: what answers. What it throws before it has sent anything is answered with status
  ///     500.
  /// - Throws: if it cannot listen there.
  package init(
    port: UInt16 = 0, settled: @escaping @Sendable (LoopbackExchange) -> Void = { _ in },
    handler: @escaping Handler
  ) throws {
    listener = try LoopbackListener(port: port, settled: settled, handler: handler)
    listener.start()
  }

  deinit { listener.stop() }

  /// Stops it: closes its port, and the connections that are open.
  package func stop() { listener.stop() }

  /// The port it listens on.
  package var port: UInt16 { listener.port }

  /// Its address, without a slash at the end.
  package var url: String { "http://127.0.0.1:\(port)" }

  /// What has been asked of it so far, in the order it arrived.
  package var log: [LoopbackExchange] { listener.log }

  /// Forgets what has been asked of it.
  ///
  /// Running exchanges are forgotten, too.
  package func forgetLog() { listener.forgetLog() }

  /// Freezes one of the next requests; those after it are answered.
  package func freeze(_ place: FrozenPlace) { listener.freeze(place) }

  /// What was asked with the request that is frozen, or was; nil if it has not come.
  package var frozenCall: String? { listener.frozenCall }

  /// How many connections there have been.
  package var connectionCount: Int { listener.connectionCount }

  /// How many requests there were for each path and, where it has one, each `cid` parameter.
  package var counts: [String: Int] {
    var counts: [String: Int] = [:]
    for exchange in log {
      let name = exchange.parameter("cid").map { "\(exchange.path) \($0)" } ?? exchange.path
      counts[name, default: 0] += 1
    }
    return counts
  }
}
