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

extension HostileFirehose: FrozenPartner {
  private static let places: [(manner: Freeze, behaviour: Behaviour)] = [
    (.silent, .accepts), (.headAlone, .opens), (.byteASecond, .opensSlowly),
    (.byteASecond, .trickles([UInt8](repeating: 0, count: 100))),
    (.flood, .floods(webSocketFrame([1], first: 0x89))),
  ]

  package var places: [FrozenPlace] {
    Self.places.enumerated().map { FrozenPlace($0.offset, $0.element.manner) }
  }

  package func forgetCalls() {}

  package func freeze(_ place: FrozenPlace) {
    (behaviour, isFrozen) = (Self.places[place.number].behaviour, true)
  }

  package var frozenCall: String? { isFrozen && connectionCount > 0 ? "a WebSocket" : nil }

  package func thaw() { isFrozen = false }
}

/// An address at which there is a server, or, while it is frozen, none with which a connection or
/// TLS can be made.
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
    guard let manner = state.withLock({ $0.place?.manner }), var url = URLComponents(string: open)
    else { return open }
    if manner == .handshake { url.scheme = "https" }
    url.port = Int(manner == .connecting ? full.port : silent.port)
    return url.string ?? open
  }

  package var places: [FrozenPlace] {
    let manners: [Freeze] = open.hasPrefix("http") ? [.connecting, .handshake] : [.connecting]
    // Only Linux has connections wait that are more than a server wants to have wait.
    #if os(Linux)
      return manners.map { FrozenPlace(0, $0) }
    #else
      return manners.filter { $0 != .connecting }.map { FrozenPlace(0, $0) }
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
