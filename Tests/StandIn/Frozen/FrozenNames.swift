import Foundation
import LibC
import Synchronization
import TestSupport

/// A DNS server that knows one TXT record, and that says nothing while it is frozen; a command is
/// made to ask it by a `resolv.conf` of its own.
package final class FrozenNames: FrozenPartner {
  private struct State {
    var calls = 0
    var freeze: PlannedFreeze?
    var isFrozen = false
    var isStopped = false
  }

  private static let resolverFile = "/etc/resolv.conf"

  private let socket: Socket
  private let folder: TemporaryFolder
  private let text: [UInt8]
  private let state = Mutex(State())

  /// Whether this system lets a test have a DNS server, and a process a `resolv.conf`.
  package static let arePossible: Bool = {
    guard Command.canMount, let command = try? Command(in: TemporaryFolder()),
      let names = try? FrozenNames("")
    else { return false }
    defer { names.stop() }
    return (try? command.run(names.line("true")).status) == 0
  }()

  /// A server, on an address of this machine of its own.
  ///
  /// - Parameter text: what its record says.
  /// - Throws: if it may not listen there.
  package init(_ text: String) throws {
    self.text = Array(text.utf8)
    let place = UInt16.random(in: 1..<65535)
    folder = try TemporaryFolder()
    let line = "nameserver 127.53.\(place >> 8).\(place & 0xff)\n"
    try folder.write("resolv.conf", Array(line.utf8))
    socket = try Socket.receivingDatagrams(at: 0x7f35_0000 | UInt32(place), port: 53)
    let thread = Thread { [self] in serve() }
    thread.start()
  }

  /// Ends it.
  package func stop() { state.withLock { $0.isStopped = true } }

  /// A line of shell that runs a command which asks this server.
  package func line(_ command: String) -> String {
    "unshare -rm sh -c 'mount --bind \(folder.file("resolv.conf")) \(Self.resolverFile) && exec \(command)'"
  }

  /// Whether it is silent from some call on.
  package var isFrozen: Bool { state.withLock { $0.freeze != nil } }

  package var places: [FrozenPlace] {
    state.withLock { state in (0..<max(1, state.calls)).map { FrozenPlace($0, .silent) } }
  }

  package func forgetCalls() { state.withLock { $0.calls = 0 } }

  package func freeze(_ place: FrozenPlace) {
    state.withLock { $0.freeze = PlannedFreeze(manner: place.manner, left: place.number) }
  }

  package var frozenCall: String? { state.withLock { $0.freeze?.call } }

  package func thaw() { state.withLock { ($0.freeze, $0.isFrozen) = (nil, false) } }

  private func serve() {
    while !state.withLock({ $0.isStopped }) {
      socket.answerDatagram(within: 200) { query in
        let isFrozen = state.withLock { state in
          state.calls += 1
          if state.freeze?.meets("a name") == true { state.isFrozen = true }
          return state.isFrozen
        }
        return isFrozen ? nil : answer(to: query)
      }
    }
    socket.close()
  }

  /// The record for a question for TXT; nothing for any other (RFC 1035, section 4).
  private func answer(to query: [UInt8]) -> [UInt8]? {
    guard query.count > 12, let end = query[12...].firstIndex(of: 0), query.count >= end + 5 else {
      return nil
    }
    let isText = query[end + 2] == 16
    let head = query[..<2] + [0x81, 0x80, 0, 1, 0, isText ? 1 : 0, 0, 0, 0, 0]
    let size = UInt8(text.count)
    let record = [0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, size + 1, size] + text
    return Array(head + query[12..<end + 5]) + (isText ? record : [])
  }
}
