import NIOCore
import Synchronization

/// The client of the request that is being answered, as far as work for it is concerned.
final class Asker: Sendable {
  /// That of the request that this task answers.
  @TaskLocal static var current: Asker?

  /// Says whether the client of this task's request is still there.
  static var currentIsPresent: @Sendable () -> Bool {
    guard let asker = current else { return { true } }
    return { asker.isPresent }
  }

  private let channel: any Channel
  private let isEnded: @Sendable () -> Bool

  /// - Parameters:
  ///   - channel: the connection.
  ///   - isEnded: whether the client has said that it sends nothing more.
  init(_ channel: any Channel, isEnded: @escaping @Sendable () -> Bool) {
    (self.channel, self.isEnded) = (channel, isEnded)
  }

  /// Whether it is still there.
  ///
  /// One that has closed its connection and one that has only closed its half of it look the same
  /// until something is sent; both count as gone.
  var isPresent: Bool { channel.isActive && !isEnded() }
}

/// All who wait for the same work, until it begins.
final class Askers: Sendable {
  private struct State {
    var clients: [Asker] = []
    /// Whether the server itself waits for it.
    var isServers = false
    var isBegun = false
  }

  private let state = Mutex(State())

  /// One more waits; the server itself if it is no client.
  func add(_ asker: Asker?) {
    state.withLock { state in
      guard !state.isBegun else { return }
      if let asker { state.clients.append(asker) } else { state.isServers = true }
    }
  }

  /// Whether one of them is still there.
  var arePresent: Bool {
    state.withLock { $0.isServers || $0.clients.contains(where: \.isPresent) }
  }

  /// The work has begun, and is done to its end whoever waits.
  func begin() {
    state.withLock { state in
      (state.isBegun, state.clients) = (true, [])
    }
  }
}
