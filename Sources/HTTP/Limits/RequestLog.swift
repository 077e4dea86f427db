/// A transport that tells an observer of every request, and how it came out.
struct RequestLog: HTTPTransport {
  private let next: any HTTPTransport
  private let clock: any NetworkClock
  private let observer: @Sendable (NetworkEvent) -> Void

  /// A log of what goes to another transport.
  init(
    _ next: any HTTPTransport, clock: any NetworkClock,
    observer: @escaping @Sendable (NetworkEvent) -> Void
  ) {
    self.next = next
    self.clock = clock
    self.observer = observer
  }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let start = clock.now
    let tell = { @Sendable (outcome: String) in
      observer(
        .request(
          method: request.method.rawValue, url: request.url, outcome: outcome,
          seconds: clock.now - start))
    }
    do {
      let response = try await next.send(request)
      let status = response.status
      response.body.whenEnded { error in
        tell(error.map { Self.words($0) } ?? "status \(status)")
      }
      return response
    } catch {
      tell(Self.words(error))
      throw error
    }
  }

  private static func words(_ error: any Error) -> String {
    switch error {
    case let error as TransportError: error.what
    case is CancellationError: "cancelled"
    default: "\(error)"
    }
  }
}
