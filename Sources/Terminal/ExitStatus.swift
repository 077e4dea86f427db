internal import LibC

/// The exit status of the command; the same for every verb.
package struct ExitStatus: Error, Equatable {
  package let number: CInt

  package init(number: CInt) { self.number = number }

  package static let success = ExitStatus(number: 0)
  package static let failure = ExitStatus(number: 1)
  package static let incomplete = ExitStatus(number: 10)
  package static let damaged = ExitStatus(number: 11)
  package static let notGenuine = ExitStatus(number: 12)
  package static let refused = ExitStatus(number: 13)
  package static let usage = ExitStatus(number: 64)
  package static let noInput = ExitStatus(number: 66)
  package static let unavailable = ExitStatus(number: 69)
  package static let cannotCreate = ExitStatus(number: 73)
  package static let ioError = ExitStatus(number: 74)
  package static let temporary = ExitStatus(number: 75)
  package static let loginRefused = ExitStatus(number: 77)
  package static let interrupted = ExitStatus(number: 130)

  /// The statuses, from the worst to success.
  private static let order = [
    damaged, notGenuine, refused, ioError, cannotCreate, usage, noInput, failure, interrupted,
    loginRefused,
    unavailable, temporary, incomplete, success,
  ]

  /// The worst of these.
  package static func worst(_ statuses: ExitStatus...) -> ExitStatus { worst(statuses) }

  /// The worst of these; one that is not in the order is worse than all that are.
  package static func worst(_ statuses: [ExitStatus]) -> ExitStatus {
    statuses.first { !order.contains($0) } ?? order.first(where: statuses.contains) ?? .success
  }

  /// Ends the verb with it, unless it is success.
  package func finish() throws(ExitStatus) { if self != .success { throw self } }

  /// Ends a command with the worst of these, unless that is success.
  package static func end(with statuses: ExitStatus...) throws(ExitStatus) {
    try worst(statuses).finish()
  }

  /// Ends the process.
  package func leave() -> Never { exit(number) }
}
