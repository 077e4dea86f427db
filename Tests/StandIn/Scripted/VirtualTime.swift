package import HTTP
import Synchronization

/// A clock that jumps to the end of each wait, so that hours of waiting take no time.
///
/// Sleepers continue in the order of the times that they wait for, and only when all others who
/// were at it wait, too, or have had many turns.
package final class VirtualClock: NetworkClock {
  private let state = Mutex<(now: Double, naps: [Double])>((0, []))
  /// The time at the beginning, in seconds since 1970.
  package let start: Double

  /// A clock that begins then.
  package init(unixTime start: Double = 1_800_000_000) { self.start = start }

  /// How many seconds have passed.
  package var now: Double { state.withLock { $0.now } }
  /// The time in seconds since 1970.
  package var unixTime: Double { start + now }
  /// All waits, in the order they were asked for.
  package var naps: [Double] { state.withLock { $0.naps } }

  /// Jumps.
  package func sleep(_ seconds: Double) async throws {
    let end = state.withLock { state in
      state.naps.append(seconds)
      return state.now + seconds
    }
    // Others who are not waiting get on with what they do in the meantime.
    for _ in 0..<20 { await Task.yield() }
    try Task.checkCancellation()
    state.withLock { $0.now = max($0.now, end) }
  }

  /// Jumps ahead, for nobody in particular.
  package func advance(_ seconds: Double) { state.withLock { $0.now += seconds } }
}

/// A transport whose answers a closure makes up.
package final class ScriptedTransport: HTTPTransport {
  /// What answers a request, which is the first, the second and so on.
  package typealias Script =
    @Sendable (HTTPRequest, Int) async throws -> (
      status: Int, fields: [(name: String, value: String)], body: [UInt8]
    )
  private let script: Script
  private let requests = Mutex<[HTTPRequest]>([])

  /// A transport with these answers.
  package init(_ script: @escaping Script) { self.script = script }

  /// How many requests there were.
  package var count: Int { requests.withLock { $0.count } }
  /// All requests.
  package var log: [HTTPRequest] { requests.withLock { $0 } }

  /// Answers as the script says.
  package func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let number = requests.withLock { requests in
      requests.append(request)
      return requests.count
    }
    let answer = try await script(request, number)
    return HTTPResponse(
      status: answer.status, fields: answer.fields, url: request.url, body: HTTPBody([answer.body]))
  }
}
