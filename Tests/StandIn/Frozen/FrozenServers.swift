import Foundation
import Synchronization

extension LoopbackServer: FrozenPartner {
  /// From how many bytes on a body fills what the system keeps of it, so that not reading it holds
  /// the client up.
  private static let longBody = 4 << 20

  package var places: [FrozenPlace] {
    log.flatMap { exchange in
      let manners: [Freeze] =
        exchange.method == "HEAD" ? [.silent] : [.silent, .headAlone, .byteASecond]
      return (manners + (exchange.bodyLength >= Self.longBody ? [.bodyUnread] : [])).map {
        FrozenPlace(exchange.number, $0)
      }
    }
  }

  package func forgetCalls() { forgetLog() }

  package func thaw() {}
}

extension LoopbackRelay: FrozenPartner {
  package var places: [FrozenPlace] { (0..<callCount).map { FrozenPlace($0, .silent) } }
}

/// An address at which there is a server, or, while it is frozen, nobody with whom a connection or
/// TLS comes about.
package final class FrozenDoor: FrozenPartner {
  private struct State {
    var place: FrozenPlace?
    var knocks: [Socket] = []
  }

  private let open: String
  private let silent: LoopbackRelay
  private let full: Socket
  private let state = Mutex(State())

  /// A door to the server with this URL.
  package init(to url: String) throws {
    open = url
    silent = try LoopbackRelay(to: nil)
    full = try Socket.listening(port: 0, backlog: 0)
  }

  deinit {
    silent.stop()
    thaw()
    full.close()
  }

  /// The URL to ask at present.
  package var url: String {
    switch state.withLock({ $0.place?.manner }) {
    case nil: open
    case .connecting: "http://127.0.0.1:\(full.port)"
    default: "https://127.0.0.1:\(silent.port)"
    }
  }

  package var places: [FrozenPlace] {
    // Only Linux has connections wait that are more than a server wants to have wait.
    #if os(Linux)
      [FrozenPlace(0, .connecting), FrozenPlace(0, .handshake)]
    #else
      [FrozenPlace(0, .handshake)]
    #endif
  }

  package func forgetCalls() {}

  package func freeze(_ place: FrozenPlace) {
    state.withLock { state in
      state.place = place
      guard place.manner == .connecting else { return }
      while let socket = Socket.connecting(to: full.port, within: 200) {
        state.knocks.append(socket)
      }
    }
  }

  package var frozenCall: String? {
    state.withLock { $0.place?.manner } == .connecting
      ? "connect" : silent.connectionCount > 0 ? "handshake" : nil
  }

  package func thaw() {
    state.withLock { state in
      for socket in state.knocks { socket.close() }
      state = State()
    }
  }
}
