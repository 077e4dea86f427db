import Foundation
import Synchronization

/// A way to a server on this machine that can fall silent: connections stay open then, new ones are
/// taken, and nothing gets through any more.
package final class LoopbackRelay: Sendable {
  private struct State {
    var open: Set<Socket> = []
    var connections = 0
    var isSilent = false
    var isStopped = false
    var calls = 0
    var freeze: PlannedFreeze?
    /// Connections on which a call was frozen.
    var frozen: Set<Socket> = []

    /// Whether what comes from a socket, or goes to it, has to wait.
    func holds(_ sockets: [Socket]) -> Bool {
      !isStopped && (isSilent || sockets.contains(where: frozen.contains))
    }
  }

  private let listener: Socket
  private let destination: UInt16?
  private let state = Mutex(State())

  /// The port it listens on.
  package let port: UInt16

  /// Starts it.
  ///
  /// - Parameter destination: the port of the server; nil for none, so that it never says anything.
  /// - Throws: if it cannot listen.
  package init(to destination: UInt16?) throws {
    listener = try Socket.listening(port: 0)
    port = listener.port
    self.destination = destination
    Self.start { [self] in accept() }
  }

  /// How many connections there have been.
  package var connectionCount: Int { state.withLock { $0.connections } }

  /// Whether nothing gets through at present; what is sent meanwhile comes late.
  package var isSilent: Bool {
    get { state.withLock { $0.isSilent } }
    set { state.withLock { $0.isSilent = newValue } }
  }

  /// Has nothing get through any more on the connections that there are, as where a server was
  /// replaced by another at its address; new connections get through.
  package func loseConnections() { state.withLock { $0.frozen.formUnion($0.open) } }

  /// How many pieces have come from clients since they were forgotten.
  package var callCount: Int { state.withLock { $0.calls } }

  /// Forgets the pieces so far.
  package func forgetCalls() { state.withLock { $0.calls = 0 } }

  /// Has the connection fall silent on which one of the next pieces comes from a client; that piece
  /// does not get through.
  package func freeze(_ place: FrozenPlace) {
    state.withLock { $0.freeze = PlannedFreeze(manner: place.manner, left: place.number) }
  }

  /// Letters of the piece with which a connection fell silent; nil if none has.
  package var frozenCall: String? { state.withLock { $0.freeze?.call } }

  /// Lets everything through again.
  package func thaw() { state.withLock { ($0.freeze, $0.frozen) = (nil, []) } }

  /// Counts a piece that came from a client.
  private func count(_ bytes: [UInt8], from client: Socket) {
    let letters = bytes.prefix(200).split { !(0x20..<0x7f).contains($0) }.map {
      String(decoding: $0, as: UTF8.self)
    }
    state.withLock { state in
      state.calls += 1
      let call = letters.max { $0.count < $1.count } ?? ""
      if state.freeze?.meets(String(call.prefix(60))) == true { state.frozen.insert(client) }
    }
  }

  /// Ends it, and all connections.
  package func stop() {
    state.withLock { state in
      state.isStopped = true
      for socket in state.open { socket.shutdown() }
    }
    Socket.knock(port: port)
  }

  private static func start(_ body: @escaping @Sendable () -> Void) {
    let thread = Thread(block: body)
    thread.stackSize = 512 << 10
    thread.start()
  }

  private func accept() {
    while true {
      guard let client = listener.accept() else { continue }
      let isStopped = state.withLock { state in
        if !state.isStopped {
          state.open.insert(client)
          state.connections += 1
        }
        return state.isStopped
      }
      if isStopped {
        client.close()
        break
      }
      Self.start { [self] in serve(client) }
    }
    listener.close()
  }

  private func serve(_ client: Socket) {
    // A server that is gone ends the connection, as it would without the relay.
    let server = destination.flatMap { try? Socket.connecting(to: $0) }
    if let server {
      state.withLock { _ = $0.open.insert(server) }
      let isDone = DispatchSemaphore(value: 0)
      Self.start { [self] in
        pass(from: server, to: client)
        isDone.signal()
      }
      pass(from: client, to: server, counting: true)
      isDone.wait()
    } else if destination == nil {
      pass(from: client, to: nil)
    }
    state.withLock { state in
      for socket in [client, server].compactMap(\.self) {
        state.open.remove(socket)
        state.frozen.remove(socket)
        socket.close()
      }
    }
  }

  /// Passes bytes on until one side has ended, and then ends both.
  private func pass(from source: Socket, to destination: Socket?, counting: Bool = false) {
    while true {
      var bytes: [UInt8] = []
      let arrival = source.receive(into: &bytes)
      if counting, case .bytes = arrival { count(bytes, from: source) }
      let sockets = [source] + (destination.map { [$0] } ?? [])
      while state.withLock({ $0.holds(sockets) }) { usleep(10_000) }
      guard case .bytes = arrival else { break }
      guard let destination else { continue }
      guard destination.send(bytes.span) == bytes.count else { break }
    }
    source.shutdown()
    destination?.shutdown()
  }
}
