internal import Dispatch
internal import IPLD
internal import Synchronization
internal import XRPC

/// The bytes of one large blob on their way from the network to the end of the archive.
///
/// The transport's thread puts them in, the archive's thread takes them out. A transfer that is faster than the disk is paused.
///
/// 1. A transfer that has to start over begins another round; what came in the rounds before is void.
/// 2. Not much more than ``capacity`` bytes wait.
final class PieceQueue: Sendable {
  /// That the blob is not going to come to its end.
  struct Abandoned: Error {}

  /// What there is to take.
  enum Next {
    /// The next bytes.
    case piece([UInt8])
    /// The blob has come to its end.
    case end
    /// The blob begins once more.
    case restarted
  }

  /// How many bytes may wait.
  static let capacity = 4 << 20
  /// How many bytes are gathered before they are handed over.
  private static let pieceLength = 1 << 20

  private struct State {
    var round = 0
    var length: UInt64 = 0
    var pieces: [[UInt8]] = []
    var waitingCount = 0
    var gathering: [UInt8] = []
    var isEnded = false
    var isAbandoned = false
    var isIgnored = false
    var paused: (any Transfer)?
    var refusal: (any Error)?

    /// Hands over what has been gathered.
    mutating func closePiece() {
      guard !gathering.isEmpty else { return }
      pieces.append(gathering)
      gathering = []
    }
  }

  private let state = Mutex(State())
  /// Is signalled whenever something has changed for the archive's side.
  private let changes = DispatchSemaphore(value: 0)

  // MARK: The transport's side

  /// Begins a round.
  func begin(length: UInt64) {
    change { state in
      state.round += 1
      state.length = length
      state.pieces = []
      state.gathering = []
      state.waitingCount = 0
      state.isEnded = false
    }
  }

  /// Puts bytes in; or answers that there is no room, and goes on with the transfer when there is.
  ///
  /// - Throws: what the archive's side did not like.
  func put(_ bytes: Span<UInt8>, of transfer: any Transfer) throws -> Flow {
    // A span cannot go into a closure that a lock calls.
    let copy = bytes.array
    return try change { state in
      if let refusal = state.refusal { throw refusal }
      if state.isIgnored { return .proceed }
      guard state.waitingCount < Self.capacity else {
        state.paused = transfer
        return .pause
      }
      state.waitingCount += copy.count
      state.gathering += copy
      if state.gathering.count >= Self.pieceLength { state.closePiece() }
      return .proceed
    }
  }

  /// Says that the last byte has been put in.
  func end() {
    change { state in
      state.closePiece()
      state.isEnded = true
    }
  }

  /// Says that the blob is given up.
  func abandon() { change { $0.isAbandoned = true } }

  // MARK: The archive's side

  /// Waits for the beginning of a round after this one, 0 for the first; answers it, and how long the blob is going to be.
  ///
  /// - Throws: ``Abandoned``.
  func nextRound(after round: Int) throws -> (round: Int, length: UInt64) {
    try wait { state in
      if state.isAbandoned { throw Abandoned() }
      return state.round > round ? (state.round, state.length) : nil
    }
  }

  /// Waits for what comes next in a round.
  ///
  /// - Throws: ``Abandoned``.
  func next(of round: Int) throws -> Next {
    let (next, paused): (Next, (any Transfer)?) = try wait { state in
      if state.isAbandoned { throw Abandoned() }
      if state.round > round { return (.restarted, nil) }
      guard !state.pieces.isEmpty else { return state.isEnded ? (.end, nil) : nil }
      let piece = state.pieces.removeFirst()
      state.waitingCount -= piece.count
      defer { state.paused = nil }
      return (.piece(piece), state.paused)
    }
    paused?.resume()
    return next
  }

  /// Tells whoever puts bytes in that no more are wanted, and why.
  func refuse(_ error: any Error) { leave { $0.refusal = error } }

  /// Lets what comes from now on, and what waits, go nowhere.
  func ignoreRest() { leave { $0.isIgnored = true } }

  /// Ends the taking: nothing is kept any more, and whoever waits for room goes on.
  private func leave(_ change: (inout State) -> Void) {
    let paused = state.withLock { state in
      change(&state)
      state.pieces = []
      state.gathering = []
      defer { state.paused = nil }
      return state.paused
    }
    paused?.resume()
  }

  // MARK: Changing and waiting

  @discardableResult
  private func change<Value>(_ body: (inout State) throws -> sending Value) rethrows -> Value {
    let value = try state.withLock(body)
    changes.signal()
    return value
  }

  private func wait<Value>(_ body: (inout State) throws -> sending Value?) rethrows -> Value {
    while true {
      if let value = try state.withLock(body) { return value }
      changes.wait()
    }
  }
}
