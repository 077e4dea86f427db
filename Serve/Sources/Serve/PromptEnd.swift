import Dispatch
import LibC
import Synchronization

/// Ends the process a second after SIGTERM or SIGINT, and at once on a second signal, whatever
/// clients do.
///
/// The first signal makes the server end by itself, after the answers that are being sent; a client
/// that reads nothing could delay that for minutes. This code runs on a queue of its own and
/// depends on no task and no connection.
struct PromptEnd {
  private static let grace = DispatchTimeInterval.seconds(1)
  /// The exit status of the last signal; 0 before the first.
  private static let status = Atomic<CInt>(0)

  private let sources: [any DispatchSourceSignal]

  /// Listens for the signals.
  ///
  /// - Parameters:
  ///   - listening: is left when both are listened for; until then they end the process.
  ///   - stop: makes the server end by itself.
  init(_ listening: DispatchGroup, _ stop: @escaping @Sendable () -> Void) {
    let queue = DispatchQueue(label: "signals")
    sources = [SIGTERM, SIGINT].map { number in
      #if !os(Linux)
        // The source is notified nevertheless. On Linux it takes the signal over itself, and one
        // that came before would be lost.
        signal(number, SIG_IGN)
      #endif
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        let before = Self.status.exchange(128 + number, ordering: .relaxed)
        // Files without a name go by themselves, and logs are written line by line.
        guard before == 0 else { _exit(128 + number) }
        stop()
        queue.asyncAfter(deadline: .now() + Self.grace) { _exit(128 + number) }
      }
      listening.enter()
      source.setRegistrationHandler { listening.leave() }
      source.resume()
      return source
    }
    listening.leave()
  }

  /// Stops listening; returns the exit status of a process that has ended by itself.
  func cancel() -> CInt {
    for source in sources { source.cancel() }
    return Self.status.load(ordering: .relaxed)
  }
}
