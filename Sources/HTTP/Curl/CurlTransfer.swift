internal import CCurl
internal import Synchronization

/// A request on its way.
///
/// All of it belongs to the event thread, but for ``resume()`` and ``cancel()``. The head goes to
/// the task that sent the request, the body into a pipe: the thread
/// only moves bytes.
@safe
final class CurlTransfer: Transfer, @unchecked Sendable {
  /// What is asked, and what has been decided about it.
  struct Order: Sendable {
    var request: HTTPRequest
    var target: ConnectionTarget
    var url: HTTPURL { target.url }
  }

  typealias Continuation = CheckedContinuation<HTTPResponse, any Error>

  let order: Order
  private let addresses: AddressCheck
  private let loop: CurlLoop
  /// Where the body goes.
  let pipe = BodyPipe()
  private let cancelled = Atomic<Bool>(false)
  // From here on, what exists while the transfer is under way.
  private var reception: Reception
  /// The task that waits for the head.
  private var continuation: Continuation?
  /// The head, until it is handed on.
  private var head: HTTPResponse?
  private(set) var easy: CurlEasy?
  /// What of the body has come and is not in the pipe yet.
  private var piece: [UInt8] = []
  /// Why libcurl was told to stop.
  private var failure: TransportError?
  /// How much of what is sent along has been handed to libcurl.
  private var bodyOffset: UInt64 = 0
  /// Why what is sent along could not be read.
  private var bodyFailure: (any Error)?

  /// How many bytes of a body are gathered before they are handed on: for each time the reader is
  /// woken.
  private static let pieceLength = 128 << 10

  init(_ order: Order, loop: CurlLoop) {
    self.order = order
    self.loop = loop
    addresses = AddressCheck(order.target)
    reception = Reception(of: order.url, hasBody: order.request.method != .head)
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
    unsafe easy.setReception(
      head: CurlCallbacks.head, body: CurlCallbacks.body,
      context: Unmanaged.passUnretained(self).toOpaque())
    guard easy.configure(for: addresses) else {
      finish(throwing: error(.unavailable("7.80 or newer is needed")))
      return nil
    }
    if order.request.body.toCopy == nil {
      guard
        unsafe easy.setBody(
          byteCount: order.request.body.byteCount, read: CurlCallbacks.read,
          seek: CurlCallbacks.seek, context: Unmanaged.passUnretained(self).toOpaque())
      else {
        finish(throwing: error(.unavailable("it sends no long bodies")))
        return nil
      }
    }
    self.easy = easy
    return easy
  }

  /// Ends it as libcurl says it ended; the handle must have been taken out of the multi handle.
  func finish(_ code: CURLcode) {
    if let failure = bodyFailure ?? failure {
      finish(throwing: failure)
    } else if code == CURLE_OK {
      do throws(TransportError) {
        try reception.finish()
        finish()
      } catch {
        finish(throwing: error)
      }
    } else if let refusal = addresses.refusal(code) {
      finish(throwing: error(refusal))
    } else {
      var error = error(
        CurlFailure.reason(
          code, explanation: easy?.explanation(of: code) ?? "", wasSent: easy?.wasSent ?? false,
          awaitsHead: reception.progress == nil, settings: order.target.settings))
      error.progress = reception.progress
      finish(throwing: error)
    }
  }

  /// Ends it: what has come is handed on, and then why there is no more of it.
  func finish(throwing error: (any Error)? = nil) {
    easy = nil
    pipe.finish(with: piece, throwing: error)
    piece = []
    handOnHead()
    continuation.take()?.resume(
      throwing: error ?? TransportError(.cutOff("it has no head"), url: "\(order.url)"))
  }

  /// Hands the head on, if it has come and has not been handed on yet.
  func handOnHead() {
    guard let head = head.take() else { return }
    continuation.take()?.resume(returning: head)
  }

  private func handOn() {
    pipe.put(piece)
    piece = []
  }

  private func error(_ reason: TransportError.Reason) -> TransportError {
    TransportError(reason, url: "\(order.url)")
  }
}

/// What libcurl calls, on the event thread.
extension CurlTransfer {
  /// Takes a line of the head; false ends the transfer.
  func takeLine(_ line: Span<UInt8>) -> Bool {
    do throws(TransportError) {
      guard let response = try reception.takeLine(line) else { return true }
      pipe.connect(to: self)
      head = response
      loop.hasHead(self)
      return true
    } catch {
      failure = failure ?? error
      return false
    }
  }

  /// Puts the next piece of what is sent along into a buffer; answers how much, 0 at the end, and
  /// nil if it cannot be read.
  func giveBody(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    do {
      let count = try unsafe order.request.body.copy(from: bodyOffset, into: buffer)
      bodyOffset += UInt64(count)
      return count
    } catch {
      bodyFailure = error
      return nil
    }
  }

  /// Begins what is sent along anew.
  func rewindBody(to offset: UInt64) { bodyOffset = offset }

  /// Takes some of the body, all or nothing; false has it wait, and it comes again.
  func takeBody(_ bytes: Span<UInt8>) -> Bool {
    if piece.count >= Self.pieceLength {
      guard pipe.hasRoomOrPauses() else { return false }
      handOn()
    }
    if piece.capacity == 0 {
      piece.reserveCapacity(
        Int(min(UInt64(Self.pieceLength), reception.remaining ?? UInt64(bytes.count)))
          + CurlSettings.longestWrite)
    }
    unsafe bytes.withUnsafeBufferPointer { unsafe piece.append(contentsOf: $0) }
    reception.takeBody(bytes.count)
    if piece.count >= Self.pieceLength, pipe.hasRoom { handOn() }
    return true
  }
}
