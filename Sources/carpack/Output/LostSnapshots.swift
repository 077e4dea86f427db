internal import Reports
internal import Snapshots
internal import Terminal

extension Console {
  /// Names snapshots that an archive had and has no more.
  static func say(lost: [LostSnapshot], of file: String) {
    for loss in lost { Console.say(.lost, "\(file): \(loss)") }
  }
}

extension ReportingCommand {
  /// Names snapshots that are lost, and ends with the exit status for them if there are any.
  func end(with lost: [LostSnapshot], of file: String) throws {
    Console.say(lost: lost, of: file)
    try (lost.isEmpty ? ExitStatus.success : .incomplete).finish()
  }
}
