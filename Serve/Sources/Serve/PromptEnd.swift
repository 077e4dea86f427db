import Dispatch
import Foundation

/// Ends the process soon after the first signal that tells it to end, and at once on a second one,
/// whatever clients do.
///
/// The first signal has the server end by itself, after the answers that are being sent. A reader
/// that takes nothing would keep it for minutes. What looks after that stands on a queue of its own,
/// so that it depends on no task and no connection.
struct PromptEnd {
  /// How long answers that are being sent have to end.
  private static let grace = DispatchTimeInterval.milliseconds(1500)

  private let sources: [any DispatchSourceSignal]

  /// Begins to listen for SIGTERM and SIGINT, beside all others who do.
  init() {
    let queue = DispatchQueue(label: "signals")
    let signals = Signals()
    sources = [SIGTERM, SIGINT].map { number in
      // What listens is told nevertheless; the process is not stopped.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        // All run on the one queue.
        if signals.areSeen { Self.leave() }
        signals.areSeen = true
        queue.asyncAfter(deadline: .now() + Self.grace) { Self.leave() }
      }
      source.resume()
      return source
    }
  }

  /// Stops listening, for a server that has ended.
  func cancel() {
    for source in sources { source.cancel() }
  }

  /// Whether there was a signal; used on the one queue only.
  private final class Signals: @unchecked Sendable {
    var areSeen = false
  }

  /// Files without a name go by themselves, and logs are written line by line.
  private static func leave() -> Never { _exit(0) }
}
