internal import ATProtocol
internal import Archive
internal import IPLD
internal import Synchronization
internal import XRPC

/// A server that an account is restored to, asked as its owner.
///
/// Limits that a server has for one method, the reference server's thousand blobs a day for one, are
/// waited for, as long as that takes.
struct RestoreTarget: Sendable {
  let client: XRPCClient
  let did: DID
  private let waiting: @Sendable (Double, String) -> Void

  /// The longest that one call waits for a limit in all, in seconds: a day, and what clocks differ.
  private static let longestWait = 26.0 * 3600
  /// How long to wait where a server does not say.
  private static let assumedWait = 60.0

  init(
    client: XRPCClient, did: DID, waiting: @escaping @Sendable (Double, String) -> Void
  ) {
    (self.client, self.did, self.waiting) = (client, did, waiting)
  }

  /// The server's URL.
  var url: String { client.service }

  /// Does something again that the server has refused for its being too much, when it allows it.
  ///
  /// - Throws: what `body` throws otherwise; `CancellationError`.
  func patiently<Value>(
    _ gate: WaitGate = WaitGate(), _ body: () async throws -> Value
  ) async throws -> Value {
    var waited = 0.0
    while true {
      try await gate.pass()
      do {
        return try await body()
      } catch let error as XRPCError where error.status == 429 && waited < Self.longestWait {
        let wait = max(1, error.wait ?? Self.assumedWait)
        waited += wait
        if gate.close(for: wait) {
          waiting(wait, "\(error.host) allows no more calls of \(error.endpoint) until then")
        }
      }
    }
  }

  /// A time before which nothing is sent, for all who wait for the same limit.
  final class WaitGate: Sendable {
    private let opens = Mutex<ContinuousClock.Instant?>(nil)

    /// Waits until the gate is open.
    func pass() async throws {
      while let moment = opens.withLock({ $0 }), moment > .now {
        try await Task.sleep(until: moment, clock: .continuous)
      }
    }

    /// Closes it for so many seconds; answers whether it was open.
    func close(for seconds: Double) -> Bool {
      opens.withLock { moment in
        let end = ContinuousClock.now + .seconds(seconds)
        defer { moment = max(moment ?? end, end) }
        return moment.map { $0 <= .now } ?? true
      }
    }
  }
}
