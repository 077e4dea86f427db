internal import CCurl
internal import Synchronization

/// A request on its way.
///
/// All of it belongs to the event thread, but for ``resume()`` and ``cancel()``.
@safe
final class CurlTransfer: Transfer, @unchecked Sendable {
  /// What is asked, and what has been decided about it.
  struct Order: Sendable {
    var request: HTTPRequest
    var url: HTTPURL
    var offset: UInt64
    var policy: AddressPolicy
    var isRedirected: Bool
    var proxy: String?
    var settings: CurlSettings
  }

  typealias Continuation = CheckedContinuation<Reception.Outcome, any Error>

  let order: Order
  private let loop: CurlLoop
  private let cancelled = Atomic<Bool>(false)
  // From here on, what exists while the transfer is under way.
  private var reception: Reception?
  private var continuation: Continuation?
  private(set) var easy: CurlEasy?
  /// Why libcurl was told to stop.
  private var failure: (any Error)?
  /// The last address that was not connected to.
  private var refused: IPAddress?

  init(_ order: Order, sink: any ResponseSink, loop: CurlLoop) {
    self.order = order
    self.loop = loop
    reception = Reception(of: order.url, from: order.offset, sink: sink)
  }

  /// Goes on after a pause.
  func resume() { loop.post(.resume(self)) }

  /// Ends the transfer, before or after it has begun.
  func cancel() {
    cancelled.store(true, ordering: .releasing)
    loop.post(.cancel(self))
  }

  /// Makes the handle; nil, with the continuation resumed, if nothing is to begin.
  func begin(_ library: CurlLibrary, _ continuation: Continuation) -> CurlEasy? {
    self.continuation = continuation
    guard !cancelled.load(ordering: .acquiring) else {
      finish(throwing: CancellationError())
      return nil
    }
    guard let easy = CurlEasy(library) else {
      finish(throwing: error(.unavailable("no memory")))
      return nil
    }
    easy.configure(for: order)
    // Without what asks about addresses nothing is sent.
    guard
      unsafe easy.setCallbacks(
        head: CurlCallbacks.head, body: CurlCallbacks.body, socket: CurlCallbacks.openSocket,
        beforeRequest: CurlCallbacks.beforeRequest,
        context: Unmanaged.passUnretained(self).toOpaque())
    else {
      finish(throwing: error(.unavailable("7.80 or newer is needed")))
      return nil
    }
    self.easy = easy
    return easy
  }

  /// Ends it as libcurl says it ended; the handle must have been taken out of the multi handle.
  func finish(_ code: CURLcode) {
    if failure is Reception.Enough, let outcome = reception?.outcomeSoFar {
      finish(returning: outcome)
    } else if let failure {
      finish(throwing: failure)
    } else if code == CURLE_OK, let reception {
      do throws(TransportError) {
        finish(returning: try reception.finish())
      } catch {
        finish(throwing: error)
      }
    } else if let refused {
      // Of a public address over http it is the scheme that is wrong.
      finish(
        throwing: error(
          refused.scope == .global ? .unusableURL : .refusedAddress("\(refused)")))
    } else {
      finish(
        throwing: error(
          CurlFailure.reason(
            code, explanation: easy?.explanation(of: code) ?? "", wasSent: easy?.wasSent ?? false,
            settings: order.settings)))
    }
  }

  func finish(throwing error: any Error) {
    let continuation = continuation.take()
    letGo()
    continuation?.resume(throwing: error)
  }

  private func finish(returning outcome: Reception.Outcome) {
    let continuation = continuation.take()
    letGo()
    continuation?.resume(returning: outcome)
  }

  /// A sink may keep its transfer; not the other way round as well.
  private func letGo() {
    reception = nil
    easy = nil
  }

  private func error(_ reason: TransportError.Reason) -> TransportError {
    TransportError(reason, url: "\(order.url)")
  }
}

/// What libcurl calls, on the event thread.
extension CurlTransfer {
  /// Takes a line of the head; false ends the transfer.
  func takeLine(_ line: Span<UInt8>) -> Bool {
    do {
      try reception?.takeLine(line, transfer: self)
      return true
    } catch {
      failure = failure ?? error
      return false
    }
  }

  /// Takes a piece of the body; nil ends the transfer.
  func takeBody(_ bytes: Span<UInt8>) -> Flow? {
    do {
      return try reception?.takeBody(bytes)
    } catch {
      failure = failure ?? error
      return nil
    }
  }

  /// Whether an address may be connected to.
  func permitsConnection(to address: IPAddress) -> Bool {
    if order.proxy != nil { return true }
    let isPermitted = order.policy.permits(
      address, for: order.url, isRedirected: order.isRedirected)
    if !isPermitted { refused = address }
    return isPermitted
  }
}
