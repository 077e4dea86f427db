/// How a server stops in the middle of one answer, and leaves the connection open.
package enum Freeze: String, Sendable, CaseIterable {
  /// It takes the request, and says nothing.
  case silent
  /// It sends the head, and nothing of the body.
  case headAlone = "the head alone"
  /// It sends the body, a byte a second.
  case byteASecond = "a byte a second"

  /// What becomes of the body; nil if there is no answer.
  var distortion: Distortion? {
    switch self {
    case .silent: nil
    case .headAlone: .stalled(at: 0)
    case .byteASecond: .dripping(bytesPerSecond: 1)
    }
  }
}

/// Which of the next requests is frozen.
struct PlannedFreeze {
  /// How.
  let manner: Freeze
  /// How many requests come before.
  var left: Int
  /// What was asked with the frozen one; nil until it comes.
  var request: String?
}
