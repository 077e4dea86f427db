internal import ArgumentParser
internal import Files
internal import SystemPackage
internal import Terminal

/// `carpack schedule`: a backup every night, by the timer of the system.
struct ScheduleCommand: Verb {
  static let page = ManualPage("schedule", PackageResources.schedule_txt)

  enum Change: String, CaseIterable, ExpressibleByArgument { case on, off }

  @Argument(help: "\"on\" or \"off\"; without it, show whether there is a timer.")
  var change: Change?

  @Option(
    name: .customLong("at"),
    help: ArgumentHelp("With \"on\": when, in local time.", valueName: "HH:MM"))
  var time: ClockTime?

  @OptionGroup var common: CommonOptions

  func validate() throws {
    try require(time == nil || change == .on, "--at is for \"on\"")
  }

  func run() throws {
    guard let schedule = Schedule() else {
      throw Failure("no home folder for the timer (HOME)", status: .failure)
    }
    switch change {
    case .on:
      guard let configuration = try Configuration.ofUser(), !configuration.accounts.isEmpty else {
        throw Failure(
          "no accounts are listed",
          hint:
            "list them in \(Configuration.location ?? "config.toml"): see \"carpack config --help\"",
          status: .usage)
      }
      try schedule.turnOn(at: time ?? .usual)
      common.say("backups are scheduled every day at \((time ?? .usual).text)")
    case .off:
      let wasThere = try schedule.turnOff()
      common.say(wasThere ? "backups are no longer scheduled" : "there was no timer")
    case nil:
      guard schedule.isThere else {
        throw Failure(
          "no backups are scheduled", hint: "\"carpack schedule on\" schedules them",
          status: .noInput)
      }
      Console.print("backups are scheduled by \(schedule.timer)")
    }
  }
}

/// A time of day.
struct ClockTime: ExpressibleByArgument {
  let hour: Int
  let minute: Int

  static let usual = ClockTime(hour: 3, minute: 0)

  private init(hour: Int, minute: Int) { (self.hour, self.minute) = (hour, minute) }

  init?(argument: String) {
    let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ 1...2 ~= $0.count && $0.allSatisfy(\.isASCII) }),
      let hour = Int(parts[0]), let minute = Int(parts[1]), 0..<24 ~= hour, 0..<60 ~= minute
    else { return nil }
    self.init(hour: hour, minute: minute)
  }

  var text: String { [hour, minute].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":") }
}
