import Synchronization
import XRPC

/// A sink that keeps everything, and does what a test wants.
final class RecordingSink: ResponseSink {
  struct State {
    var response: HTTPResponse?
    var begins: [UInt64] = []
    var bytes: [UInt8] = []
    var transfer: (any Transfer)?
    var pauses = 0
    var mayTake = true
    /// How far a body may come before the sink throws.
    var limit = Int.max
    /// How many pieces are refused before one is taken.
    var refusals = 0
    var resumable = false
  }

  struct Full: Error, Equatable {}

  let state: Mutex<State>

  init(_ change: (inout State) -> Void = { _ in }) {
    var state = State()
    change(&state)
    self.state = Mutex(state)
  }

  var bytes: [UInt8] { state.withLock { $0.bytes } }
  var begins: [UInt64] { state.withLock { $0.begins } }

  var resumableOffset: UInt64 {
    state.withLock { $0.resumable ? UInt64($0.bytes.count) : 0 }
  }

  func begin(_ response: HTTPResponse, offset: UInt64, transfer: any Transfer) throws {
    state.withLock {
      $0.response = response
      $0.begins.append(offset)
      $0.bytes.removeLast($0.bytes.count - Int(offset))
      $0.transfer = transfer
    }
  }

  func take(_ bytes: Span<UInt8>) throws -> Flow {
    var copy: [UInt8] = []
    for index in bytes.indices { copy.append(bytes[index]) }
    return try state.withLock { state in
      guard state.mayTake else {
        state.pauses += 1
        return .pause
      }
      if state.refusals > 0 {
        state.refusals -= 1
        state.pauses += 1
        state.transfer?.resume()
        return .pause
      }
      guard state.bytes.count + copy.count <= state.limit else { throw Full() }
      state.bytes += copy
      return .proceed
    }
  }

  /// Takes what comes from now on.
  func goOn() {
    let transfer = state.withLock { state in
      state.mayTake = true
      return state.transfer
    }
    transfer?.resume()
  }
}
