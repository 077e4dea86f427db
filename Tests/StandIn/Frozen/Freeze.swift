/// How a partner stops at one call, and leaves everything open.
package enum Freeze: String, Sendable, CaseIterable {
  /// No connection comes about.
  case connecting = "no connection"
  /// It accepts a connection, and no TLS comes about.
  case handshake = "no TLS"
  /// It accepts the call, and does not answer.
  case silent
  /// It takes the head of a request, and nothing of its body.
  case bodyUnread = "body unread"
  /// It sends the head of an answer, and nothing of the body.
  case headAlone = "head alone"
  /// It sends the body of an answer, a byte a second.
  case byteASecond = "a byte/s"
  /// It sends pings without an end, and reads nothing.
  case flood = "pings"

  /// What happens to the body of an answer; nil if there is no answer.
  var distortion: Distortion? {
    switch self {
    case .headAlone: .stalled(at: 0)
    case .byteASecond: .dripping(bytesPerSecond: 1)
    default: nil
    }
  }
}

/// Which of the next calls is frozen.
struct PlannedFreeze {
  /// How.
  let manner: Freeze
  /// How many calls come before.
  var left: Int
  /// The frozen call; nil until it comes.
  var call: String?

  /// Counts a call; returns whether it is the frozen one.
  mutating func meets(_ call: String) -> Bool {
    guard self.call == nil else { return false }
    guard left == 0 else {
      left -= 1
      return false
    }
    self.call = call
    return true
  }
}

/// A call of a command, and a way to freeze it.
package struct FrozenPlace: Sendable {
  /// The ordinal of the partner's call, counted from 0.
  package let number: Int
  /// How it is frozen.
  package let manner: Freeze

  package init(_ number: Int, _ manner: Freeze) {
    (self.number, self.manner) = (number, manner)
  }
}

/// What a command waits for, and what can stop in the middle of it.
package protocol FrozenPartner: Sendable {
  /// Where a command that has completed could have been frozen.
  var places: [FrozenPlace] { get }
  /// Forgets the calls so far.
  func forgetCalls()
  /// Stops at a place, from now on.
  func freeze(_ place: FrozenPlace)
  /// The call at which it has stopped; nil if that has not come.
  var frozenCall: String? { get }
  /// Lets everything through again.
  func thaw()
}
