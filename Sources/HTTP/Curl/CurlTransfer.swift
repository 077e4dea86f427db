internal import CCurl
internal import Synchronization

/// A running request.
///
/// All of it belongs to the event thread, except for ``resume()`` and ``cancel()``. The head goes
/// to the task that sent the request, the body into a pipe: the thread only moves bytes.
@safe
final class CurlTransfer: @unchecked Sendable {
  typealias Continuation = CheckedContinuation<HTTPResponse, any Error>

  private let request: HTTPRequest
  private let target: ConnectionTarget
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
  /// The part of the body that has arrived and is not in the pipe yet.
  private var piece: [UInt8] = []
  /// Why libcurl was stopped.
  private var failure: (any Error)?
  /// When bytes of the answer arrived last.
  private var lastArrival: ContinuousClock.Instant?
  /// How much of the request's body has been handed to libcurl.
  private var bodyOffset: UInt64 = 0

  /// How many bytes of a body are collected before they are handed on: the reader is woken each
  /// time.
  private static let pieceLength = 128 << 10

  init(_ request: HTTPRequest, _ target: ConnectionTarget, loop: CurlLoop) {
    self.request = request
    self.target = target
    self.loop = loop
    reception = Reception(of: target.url, hasBody: request.method != .head)
  }

  /// Resumes a paused transfer, from any thread, at any time; without a pause it does nothing.
  func resume() { loop.post(.resume(self)) }

  /// Ends the transfer, before or after it has begun.
  func cancel() {
    cancelled.store(true, ordering: .releasing)
    loop.post(.cancel(self))
  }

  /// Makes the handle; nil, with the continuation resumed, if nothing is to begin.
  func begin(_ library: CurlLibrary, _ continuation: Continuation) -> CurlEasy? {
    self.continuation = continuation
    do {
      if cancelled.load(ordering: .acquiring) { throw CancellationError() }
      let easy = try CurlEasy(library, AddressCheck(target))
      easy.configure(for: request, target.settings)
      easy.setTransfer(self)
      self.easy = easy
    } catch {
      finish(throwing: error)
    }
    return easy
  }

  /// Ends the transfer with libcurl's result.
  func finish(_ code: CURLcode) {
    do {
      if let failure { throw failure }
      if code != CURLE_OK, let easy {
        var error = target.error(
          easy.reason(code, wasSent: easy.wasSent, awaitsHead: reception.progress == nil))
        error.progress = reception.progress
        error.isTrickle = hasTrickled
        throw error
      }
      try reception.finish()
      finish(throwing: nil)
    } catch {
      finish(throwing: error)
    }
  }

  /// Ends the transfer: hands on what has arrived, and then the error, if there is one.
  func finish(throwing error: (any Error)?) {
    if let easy = easy.take() { loop.takeOut(easy) }
    pipe.finish(with: piece, throwing: error)
    piece = []
    handOnHead()
    if let error { continuation.take()?.resume(throwing: error) }
  }

  /// Hands the head on, if it has arrived and has not been handed on yet.
  func handOnHead() {
    guard let head = head.take() else { return }
    continuation.take()?.resume(returning: head)
  }

  /// Whether something has arrived lately.
  private var hasTrickled: Bool {
    lastArrival.map { ContinuousClock.now - $0 < .seconds(target.settings.stallSeconds) / 2 }
      ?? false
  }

  private func handOn() {
    pipe.put(piece)
    piece = []
  }
}

/// What libcurl calls, on the event thread.
extension CurlTransfer {
  /// Takes a line of the head; false ends the transfer.
  func takeLine(_ line: Span<UInt8>) -> Bool {
    lastArrival = .now
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

  /// Puts the next piece of the request's body into a buffer; returns how much, 0 at the end, and
  /// nil if it cannot be read.
  func giveBody(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    do {
      let count = try unsafe request.body.copy(from: bodyOffset, into: buffer)
      bodyOffset += UInt64(count)
      return count
    } catch {
      failure = failure ?? error
      return nil
    }
  }

  /// Begins the request's body anew.
  func rewindBody(to offset: UInt64) { bodyOffset = offset }

  /// Takes a piece of the body, all or nothing; false pauses the transfer, and the piece comes
  /// again.
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
    lastArrival = .now
    if piece.count >= Self.pieceLength, pipe.hasRoom { handOn() }
    return true
  }
}
