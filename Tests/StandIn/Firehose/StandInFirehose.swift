import Foundation
package import IPLD
import Synchronization
import XRPC

/// A stream of events as a server or relay has it: WebSockets on a port of this machine, to each of
/// which the events after its cursor are sent, and new ones as they come.
package final class StandInFirehose: Sendable {
  private struct State {
    var events: [(sequence: Int64, message: [UInt8])] = []
    var cursors: [Int64?] = []
    var connections: [Socket] = []
    var isClosed = false
  }

  private let socket: Socket
  private let state = Mutex(State())
  /// Its port.
  package let port: UInt16

  /// A stream without an event.
  package init() throws {
    socket = try Socket.listening(port: 0)
    port = socket.port
    let thread = Thread { [self] in serve() }
    thread.start()
  }

  /// Its address.
  package var url: String { "ws://127.0.0.1:\(port)" }

  /// From where each client wanted to continue.
  package var cursors: [Int64?] { state.withLock { $0.cursors } }

  /// Sends an event to all followers, and to later ones.
  package func send(_ sequence: Int64, _ message: [UInt8]) {
    state.withLock { state in
      state.events.append((sequence, message))
      for connection in state.connections { Self.send(message, to: connection) }
    }
  }

  /// Ends all connections, as a server does that is started again.
  package func cutOff() {
    state.withLock { state in
      for connection in state.connections { connection.close() }
      state.connections = []
    }
  }

  /// Ends it.
  package func stop() {
    state.withLock { $0.isClosed = true }
    cutOff()
    Socket.knock(port: port)
  }

  /// A message of a header and a body.
  package static func message(_ kind: String?, _ body: [(String, IPLDValue)]) throws -> [UInt8] {
    var header: [IPLDMap.Entry] = [
      IPLDMap.Entry(key: "op", value: .integer(kind == nil ? -1 : 1))
    ]
    if let kind { header.append(IPLDMap.Entry(key: "t", value: .string(kind))) }
    let entries = body.map { IPLDMap.Entry(key: $0.0, value: $0.1) }
    return try encoded(header) + encoded(entries)
  }

  private static func encoded(_ entries: [IPLDMap.Entry]) throws -> [UInt8] {
    var map = IPLDMap()
    for entry in entries { map[entry.key] = entry.value }
    return try DAGCBOREncoder.encode(.map(map))
  }

  private func serve() {
    while true {
      guard let connection = socket.accept() else { continue }
      if state.withLock({ $0.isClosed }) {
        connection.close()
        break
      }
      greet(connection)
    }
    socket.close()
  }

  private func greet(_ connection: Socket) {
    guard let opening = connection.awaitOpening() else { return connection.close() }
    let cursor = opening.target.split(separator: "cursor=").dropFirst().first.flatMap { Int64($0) }
    _ = connection.send(opening.answer.span)
    state.withLock { state in
      state.cursors.append(cursor)
      state.connections.append(connection)
      // Without a cursor, only what comes from now on.
      guard let cursor else { return }
      for event in state.events where event.sequence > cursor {
        Self.send(event.message, to: connection)
      }
    }
  }

  private static func send(_ message: [UInt8], to connection: Socket) {
    _ = connection.send(webSocketFrame(message).span)
  }
}
