import Foundation
import Synchronization

/// A server of a WebSocket that holds its clients up, on a port of this machine.
package final class HostileFirehose: Sendable {
  /// How it does so.
  package enum Behaviour: Sendable {
    /// It accepts connections, and says nothing.
    case accepts
    /// It sends a byte a second of what should open the WebSocket.
    case opensSlowly
    /// It opens the WebSocket, and sends nothing more.
    case opens
    /// It opens the WebSocket, sends these bytes over and over, and reads nothing.
    case floods([UInt8])
    /// It opens the WebSocket, and sends a byte of these every second.
    case trickles([UInt8])
  }

  private struct State {
    var behaviour: Behaviour
    var isFrozen = false
    var connections: [Socket] = []
    var count = 0
    var isStopped = false
  }

  private let socket: Socket
  private let state: Mutex<State>
  /// Its port.
  package let port: UInt16

  /// Starts it.
  package init(_ behaviour: Behaviour) throws {
    socket = try Socket.listening(port: 0)
    port = socket.port
    state = Mutex(State(behaviour: behaviour))
    let thread = Thread { [self] in serve() }
    thread.start()
  }

  /// How it holds up the clients that come.
  package var behaviour: Behaviour {
    get { state.withLock { $0.behaviour } }
    set { state.withLock { $0.behaviour = newValue } }
  }

  /// Whether a test says how it holds them up, at present.
  package internal(set) var isFrozen: Bool {
    get { state.withLock { $0.isFrozen } }
    set { state.withLock { $0.isFrozen = newValue } }
  }

  /// How many connections there have been.
  package var connectionCount: Int { state.withLock { $0.count } }

  /// Ends it, and all connections.
  package func stop() {
    state.withLock { state in
      state.isStopped = true
      for connection in state.connections { connection.shutdown() }
    }
    Socket.knock(port: port)
  }

  private func serve() {
    while true {
      guard let connection = socket.accept() else { continue }
      let isStopped = state.withLock { state in
        if !state.isStopped {
          state.connections.append(connection)
          state.count += 1
        }
        return state.isStopped
      }
      guard !isStopped else {
        connection.close()
        break
      }
      let thread = Thread { [self] in hold(connection) }
      thread.start()
    }
    socket.close()
  }

  private func hold(_ connection: Socket) {
    talk(connection)
    // What a client that went away has left open is closed when that is seen.
    while !connection.hasHungUp(within: 1000), !state.withLock({ $0.isStopped }) {}
    state.withLock { state in state.connections.removeAll { $0 == connection } }
    connection.close()
  }

  private func talk(_ connection: Socket) {
    let behaviour = behaviour
    if case .accepts = behaviour { return }
    guard let opening = connection.awaitOpening() else { return }
    if case .opensSlowly = behaviour { return trickle(opening.answer, to: connection) }
    guard connection.send(opening.answer.span) == opening.answer.count else { return }
    switch behaviour {
    case .floods(let bytes): while connection.send(bytes.span) == bytes.count {}
    case .trickles(let bytes): trickle(bytes, to: connection)
    case .accepts, .opensSlowly, .opens: break
    }
  }

  private func trickle(_ bytes: [UInt8], to connection: Socket) {
    for byte in bytes {
      guard connection.send([byte].span) == 1, !connection.hasHungUp(within: 1000) else { return }
    }
  }
}
