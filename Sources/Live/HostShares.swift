internal import HTTP
internal import Synchronization
internal import XRPC

/// The accounts of a run that wait for their hosts, and how many of each host are being backed up.
///
/// 1. A host begins with few accounts at a time. Each success allows one more, and a failure of the
///    host brings it down to one, so that a bad host does not take places from good ones.
/// 2. An account whose host has no room, or wants to be asked later, gives its place back and waits
///    here.
final class HostShares: Sendable {
  /// The account is put off: its host has no room for it yet.
  struct NoRoom: Error { let host: String }

  /// An account that waits for its host.
  struct Waiting: Sendable {
    let account: MultiAccountBackup.Account
    let host: String
    /// How often it was put off because its host allowed no request.
    var postponements = 0
  }

  private struct Host {
    var places = HostShares.firstPlaces
    var running = 0
    var isOpenAt = ContinuousClock.now
    var isOpen: Bool { isOpenAt <= .now }
    var hasRoom: Bool { running < places && isOpen }
    /// Whether it is closed for longer than a run waits.
    var isClosedForLong: Bool { isOpenAt > .now + .seconds(HostShares.longestWait) }
  }

  private struct State {
    var hosts: [String: Host] = [:]
    var waiting: [Waiting] = []
  }

  private let state = Mutex(State())

  /// How many accounts of a host are backed up at a time before one has succeeded.
  private static let firstPlaces = 2

  /// For how many seconds at most a run waits for a host that allows no request.
  static let longestWait = 330.0

  /// How many accounts wait.
  var count: Int { state.withLock { $0.waiting.count } }

  /// Takes a place of a host.
  ///
  /// - Parameters:
  ///   - host: the host's origin.
  ///   - isLimited: whether the host's number of places counts.
  /// - Throws: ``NoRoom``; `TransportError` if the host is closed for longer than a run waits.
  func enter(_ host: String, isLimited: Bool) throws {
    try state.withLock { state in
      var known = state.hosts[host] ?? Host()
      guard !known.isClosedForLong else {
        let seconds = ContinuousClock.now.duration(to: known.isOpenAt) / .seconds(1)
        throw TransportError(.postponed(seconds: seconds.rounded(.up)), url: host)
      }
      guard known.isOpen, known.hasRoom || !isLimited else { throw NoRoom(host: host) }
      known.running += 1
      state.hosts[host] = known
    }
  }

  /// Gives a place back.
  ///
  /// - Parameters:
  ///   - host: the host's origin.
  ///   - error: why the backup failed; nil if it did not.
  func leave(_ host: String, _ error: (any Error)?) {
    state.withLock { state in
      var known = state.hosts[host] ?? Host()
      known.running -= 1
      known.places = error.map(HostFault.isHosts) ?? false ? 1 : known.places + 1
      state.hosts[host] = known
    }
    if let seconds = HostFault.postponement(error)?.seconds { close(host, for: seconds) }
  }

  /// Makes the accounts of a host wait for this many seconds.
  func close(_ host: String, for seconds: Double) {
    state.withLock { state in
      var known = state.hosts[host] ?? Host()
      known.isOpenAt = max(known.isOpenAt, .now + .seconds(seconds))
      state.hosts[host] = known
    }
  }

  /// Makes an account wait.
  func putOff(_ account: Waiting) { state.withLock { $0.waiting.append(account) } }

  /// The next account whose host has room; nil if there is none.
  ///
  /// - Parameter isLimited: whether the host's number of places counts.
  func next(isLimited: Bool) -> Waiting? {
    state.withLock { state in
      let place = state.waiting.firstIndex { waiting in
        guard let host = state.hosts[waiting.host] else { return true }
        return host.isClosedForLong || (isLimited ? host.hasRoom : host.isOpen)
      }
      return place.map { state.waiting.remove(at: $0) }
    }
  }
}

/// Whether an error is about the host that was asked, rather than about the account.
package enum HostFault {
  /// Whether it may be about all accounts of the host: no answer, or an answer that the host is
  /// overloaded.
  package static func isHosts(_ error: any Error) -> Bool {
    switch error {
    case is TransportError, is XRPCError: error.mayPass
    default: false
    }
  }

  /// In how many seconds a server wants to be asked again, and the requested URL; nil if the error
  /// does not say that.
  package static func postponement(_ error: (any Error)?) -> (seconds: Double, url: String)? {
    var found = error as? TransportError
    if case .noAnswer(_, let error)? = error as? IdentityError { found = error }
    guard let found, case .postponed(let seconds) = found.reason else { return nil }
    return (seconds, found.url)
  }
}
