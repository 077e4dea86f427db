internal import LibC

/// How the command ends; the same for every verb.
struct ExitStatus: Error, Equatable {
  let number: CInt

  static let success = ExitStatus(number: 0)
  static let failure = ExitStatus(number: 1)
  static let incomplete = ExitStatus(number: 10)
  static let damaged = ExitStatus(number: 11)
  static let notGenuine = ExitStatus(number: 12)
  static let refused = ExitStatus(number: 13)
  static let usage = ExitStatus(number: 64)
  static let noInput = ExitStatus(number: 66)
  static let unavailable = ExitStatus(number: 69)
  static let cannotCreate = ExitStatus(number: 73)
  static let ioError = ExitStatus(number: 74)
  static let temporary = ExitStatus(number: 75)
  static let loginRefused = ExitStatus(number: 77)
  static let interrupted = ExitStatus(number: 130)

  /// From the worst to nothing at all.
  private static let order = [
    damaged, notGenuine, refused, ioError, cannotCreate, usage, noInput, failure, interrupted,
    loginRefused,
    unavailable, temporary, incomplete, success,
  ]

  /// The worst of these.
  static func worst(_ statuses: ExitStatus...) -> ExitStatus { worst(statuses) }

  /// The worst of these; one that has no place in the order comes before all that have.
  static func worst(_ statuses: [ExitStatus]) -> ExitStatus {
    statuses.first { !order.contains($0) } ?? order.first(where: statuses.contains) ?? .success
  }

  /// Ends the process.
  func leave() -> Never { exit(number) }
}
