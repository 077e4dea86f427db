import Foundation
import Synchronization

/// What a ``LoopbackServer`` runs on: the port, a thread for each connection, the log.
///
/// Invariants:
/// 1. `open` holds the connections that have not been closed; each is closed by its own thread,
///    after it has been taken out.
/// 2. Once `isStopped` is set no connection is added to `open`.
final class LoopbackListener: Sendable {
  private struct State {
    var open: Set<Socket> = []
    var connections = 0
    var isStopped = false
    var log: [LoopbackExchange] = []
    var freeze: PlannedFreeze?
    /// Keeps the port after the listener is closed: another server that got it would answer in this
    /// one's name.
    var reservation: Socket?
  }

  let port: UInt16
  private let listener: Socket
  private let handler: LoopbackServer.Handler
  private let settled: @Sendable (LoopbackExchange) -> Void
  private let state = Mutex(State())
  private let started = ContinuousClock.now

  init(
    port: UInt16, settled: @escaping @Sendable (LoopbackExchange) -> Void,
    handler: @escaping LoopbackServer.Handler
  ) throws {
    listener = try Socket.listening(port: port)
    self.port = listener.port
    self.handler = handler
    self.settled = settled
  }

  func start() { start { $0.acceptConnections() } }

  func stop() {
    let wasRunning = state.withLock { state in
      defer { state.isStopped = true }
      for socket in state.open { socket.shutdown() }
      return !state.isStopped
    }
    if wasRunning { Socket.knock(port: port) }
  }

  var log: [LoopbackExchange] { state.withLock { $0.log } }

  func forgetLog() { state.withLock { $0.log.removeAll() } }

  func freeze(_ place: FrozenPlace) {
    state.withLock { $0.freeze = PlannedFreeze(manner: place.manner, left: place.number) }
  }

  var frozenCall: String? { state.withLock { $0.freeze?.call } }

  /// How the answer to a request is frozen; nil if it is not.
  private func freeze(of request: LoopbackRequest) -> Freeze? {
    state.withLock { state in
      guard state.freeze?.meets("\(request.method) \(request.path)") == true else { return nil }
      return state.freeze?.manner
    }
  }

  var connectionCount: Int { state.withLock { $0.connections } }

  /// Runs something on a thread of its own, with a small stack: there may be many.
  private func start(_ body: @escaping @Sendable (LoopbackListener) -> Void) {
    let thread = Thread { body(self) }
    thread.stackSize = 512 << 10
    thread.start()
  }

  private func acceptConnections() {
    while true {
      let accepted = listener.accept()
      let number = state.withLock { state -> Int? in
        guard !state.isStopped else { return nil }
        if let accepted {
          state.open.insert(accepted)
          state.connections += 1
        }
        return state.connections
      }
      guard let number else {
        accepted?.close()
        break
      }
      if let accepted {
        start { $0.serve(accepted, number) }
      } else {
        // Out of descriptors, most likely: some will be given back.
        Thread.sleep(forTimeInterval: 0.01)
      }
    }
    listener.close()
    state.withLock { $0.reservation = Socket.reserving(port: port) }
  }

  deinit { state.withLock { $0.reservation?.close() } }

  private func serve(_ socket: Socket, _ number: Int) {
    var connection = LoopbackConnection(socket: socket, number: number)
    var previous: LoopbackExchange?
    var wasReadToTheEnd: Bool?
    var freeze: Freeze?
    while let request = connection.next({ head in
      freeze = self.freeze(of: head)
      return freeze != .bodyUnread
    }) {
      settle(previous, wasRead: true)
      previous = nil
      let response = LoopbackResponse(socket: socket, request: request) { [weak self] in
        self?.state.withLock { $0.isStopped } ?? true
      }
      let exchange = begin(request)
      do {
        response.distortion = freeze?.distortion
        if freeze == .silent { try response.pauseForEver() }
        try handler(request, response)
        if !response.hasBegun && !response.hasEnded { try response.send() }
      } catch is LoopbackResponse.Gone {
      } catch {
        response.fault = "\(error)"
        if response.hasBegun {
          response.close()
        } else {
          response.status = 500
          try? response.send("\(error)")
        }
      }
      previous = end(exchange, response)
      if response.endsConnection || !response.hasEnded {
        if response.resetsConnection {
          socket.makeCloseReset()
          wasReadToTheEnd = false
        } else {
          wasReadToTheEnd = response.hasEnded && socket.finish(within: 5)
        }
        break
      }
    }
    // A client that closes its end after reading everything differs from one that leaves bytes
    // unread: that is a reset.
    settle(previous, wasRead: wasReadToTheEnd ?? (connection.lastArrival == .end))
    state.withLock { _ = $0.open.remove(socket) }
    socket.close()
  }

  private var now: Double { (ContinuousClock.now - started) / .seconds(1) }

  private func begin(_ request: LoopbackRequest) -> LoopbackExchange {
    let arrived = now
    return state.withLock { state in
      let exchange = LoopbackExchange(
        number: state.log.count, request: request, arrived: arrived)
      state.log.append(exchange)
      return exchange
    }
  }

  private func end(_ exchange: LoopbackExchange, _ response: LoopbackResponse) -> LoopbackExchange {
    var exchange = exchange
    exchange.ended = now
    exchange.status = response.hasBegun ? response.status : nil
    exchange.bytesSent = response.bytesSent
    exchange.isWhole = response.isWhole
    exchange.fault = response.fault ?? response.distortion.map { "\($0)" }
    store(exchange)
    return exchange
  }

  private func settle(_ exchange: LoopbackExchange?, wasRead: Bool) {
    guard var exchange else { return }
    exchange.wasRead = wasRead
    store(exchange)
    settled(exchange)
  }

  private func store(_ exchange: LoopbackExchange) {
    state.withLock { state in
      // The log may have been forgotten in the meantime, and something else be in its place.
      if exchange.number < state.log.count,
        state.log[exchange.number].arrived == exchange.arrived
      {
        state.log[exchange.number] = exchange
      }
    }
  }
}
