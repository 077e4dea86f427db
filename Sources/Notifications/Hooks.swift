internal import Reports
internal import Terminal

/// The programs that the configuration has run after a backup.
package struct Hooks {
  /// When a program is run.
  package enum Moment: String, CaseIterable {
    /// The exit status is 0.
    case success = "after-success"
    /// It is any other.
    case failure = "on-failure"
  }

  /// The program and its arguments for each moment.
  package var programs: [Moment: [String]] = [:]
  /// How long one may take, in seconds: copying remote archives takes its time.
  package var seconds: Int64 = 600

  /// The longest time that can be set, in seconds: a week.
  package static let maximumSeconds: Int64 = 604_800

  /// No programs.
  package init() {}

  /// The variable that tells a program the exit status of the backup.
  static let statusVariable = "CARPACK_STATUS"

  /// Runs the program for a backup that ended with this status, if there is one, and says what goes
  /// wrong with it.
  ///
  /// - Parameter report: What it reads on standard input.
  func run(after status: ExitStatus, report: EventRecord) {
    let moment: Moment = status == .success ? .success : .failure
    guard let words = programs[moment] else { return }
    let (limit, descriptor) = (seconds, report.open())
    do {
      let what = try runBlocking {
        try await HookProcess(words, input: descriptor, status: status).end(within: limit)
      }
      if let what { warn(moment, what) }
    } catch {
      warn(moment, (error as? Failure)?.message ?? "\(error)")
    }
  }

  private func warn(_ moment: Moment, _ what: String) {
    Console.say(.warning, "the hook \(moment.rawValue) \(what)")
  }
}
