internal import Synchronization

/// The bounded buffer between the thread that receives a body and the task that reads it.
///
/// 1. What is put in comes out in the same order, all of it before the end or the error.
/// 2. It is full from ``capacity`` pieces on; the transfer waits then, and continues as soon as one
///    is taken.
/// 3. No task waits on a pipe that has ended.
final class BodyPipe: Sendable {
  /// How many pieces may wait to be read.
  static let capacity = 2

  /// A piece, nil for the end, or why no more comes.
  private typealias Answer = Result<[UInt8]?, any Error>
  private typealias Reader = CheckedContinuation<[UInt8]?, any Error>
  /// Called at the end, with the error if there was one.
  typealias Action = @Sendable ((any Error)?) -> Void

  private struct State {
    var pieces: [[UInt8]] = []
    var reader: Reader?
    /// The other end, until it has ended.
    var transfer: CurlTransfer?
    var isPaused = false
    var received = 0
    var end: Answer?
    var actions: [Action] = []
  }

  private let state = Mutex(State())

  /// Sets the transfer whose body this is, to pause and end it.
  func connect(to transfer: CurlTransfer) { state.withLock { $0.transfer = transfer } }

  // MARK: The transfer's side

  /// Whether there is room for another piece.
  var hasRoom: Bool { state.withLock { $0.pieces.count < Self.capacity } }

  /// Whether there is room; if not, the transfer is paused and is resumed when there is.
  func hasRoomOrPauses() -> Bool {
    state.withLock { state in
      state.isPaused = state.pieces.count >= Self.capacity
      return !state.isPaused
    }
  }

  /// Puts a piece in.
  func put(_ piece: [UInt8]) {
    let reader = state.withLock { state in
      state.received += piece.count
      if state.reader == nil { state.pieces.append(piece) }
      return state.reader.take()
    }
    reader?.resume(returning: piece)
  }

  /// Puts the last piece in, and says that nothing more comes: the reader is woken once for both.
  ///
  /// - Parameters:
  ///   - last: the last piece, empty if there is none.
  ///   - error: why nothing more comes, if the body is incomplete.
  func finish(with last: [UInt8] = [], throwing error: (any Error)? = nil) {
    let end: Answer = error.map { .failure($0) } ?? .success(nil)
    let (reader, actions) = state.withLock { state -> (Reader?, [Action]) in
      guard state.end == nil else { return (nil, []) }
      state.received += last.count
      if state.reader == nil, !last.isEmpty { state.pieces.append(last) }
      state.end = end
      state.transfer = nil
      defer { state.actions = [] }
      return (state.reader.take(), state.actions)
    }
    reader?.resume(with: last.isEmpty ? end : .success(last))
    for action in actions { action(error) }
  }

  /// How many bytes have been put in.
  var receivedCount: Int { state.withLock { $0.received } }

  // MARK: The reader's side

  /// The next piece; nil at the end.
  func next() async throws -> [UInt8]? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        if let answer = take(orWait: continuation) { continuation.resume(with: answer) }
      }
    } onCancel: {
      abandon()
    }
  }

  private func take(orWait continuation: Reader) -> Answer? {
    let (answer, paused) = state.withLock { state -> (Answer?, CurlTransfer?) in
      if !state.pieces.isEmpty {
        let piece = state.pieces.removeFirst()
        defer { state.isPaused = false }
        return (.success(piece), state.isPaused ? state.transfer : nil)
      }
      if state.end == nil { state.reader = continuation }
      return (state.end, nil)
    }
    paused?.resume()
    return answer
  }

  /// Ends the transfer: the reader is gone.
  func abandon() {
    let transfer = state.withLock { $0.transfer }
    if let transfer { transfer.cancel() } else { finish(throwing: CancellationError()) }
  }

  /// Calls something when nothing more will come, or at once if that is so already.
  ///
  /// The transfer has then ended, well or with an error, or was given up.
  func whenEnded(_ action: @escaping Action) {
    let end = state.withLock { state in
      if state.end == nil { state.actions.append(action) }
      return state.end
    }
    switch end {
    case nil: break
    case .success: action(nil)
    case .failure(let error): action(error)
    }
  }
}
