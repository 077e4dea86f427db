internal import Files
internal import IPLD
internal import Notifications
internal import SystemPackage
internal import Terminal

/// The timer of the system that runs `carpack backup` for the user: systemd's on Linux, launchd's
/// on macOS.
///
/// It consists of files in a folder of the user's, and exists if ``timer`` does.
struct Schedule {
  /// The file that says when.
  let timer: FilePath
  /// The file that says what; the same where one file says both.
  private let service: FilePath
  /// The folder for archives without a place of their own.
  private let archives: String
  private let program: String

  /// How long the system's program may take, in seconds.
  private static let patience: Int64 = 30

  /// Nil if the user has no home.
  init?() {
    guard let home = Host.environment("HOME")?.value, home.hasPrefix("/"),
      let program = Program.path
    else { return nil }
    (archives, self.program) = ("\(home)/carpack", program)
    #if canImport(Darwin)
      timer = FilePath("\(home)/Library/LaunchAgents/org.carpack.backup.plist")
      service = timer
    #else
      let given = Host.environment("XDG_CONFIG_HOME").map(\.value).flatMap {
        $0.hasPrefix("/") ? $0 : nil
      }
      let folder = "\(given ?? "\(home)/.config")/systemd/user"
      timer = FilePath("\(folder)/carpack-backup.timer")
      service = FilePath("\(folder)/carpack-backup.service")
    #endif
  }

  var isThere: Bool { AtomicFile.isTaken(timer) }

  /// When a backup begins, as the files say; nil without them, or if they were changed by hand.
  var time: ClockTime? {
    get throws {
      guard isThere else { return nil }
      let file = try InputFile(timer.string)
      let text = file.withBytes { String(decoding: $0.array, as: UTF8.self) }
      #if canImport(Darwin)
        let written =
          /<key>Hour<\/key><integer>(\d+)<\/integer><key>Minute<\/key><integer>(\d+)</
      #else
        let written = /OnCalendar=\*-\*-\* (\d\d):(\d\d):00/
      #endif
      return text.firstMatch(of: written).flatMap {
        ClockTime(argument: "\($0.1):\($0.2)")
      }
    }
  }

  /// How much later than that it may begin.
  static var leeway: String {
    #if canImport(Darwin)
      ""
    #else
      ", or up to 2 hours later"
    #endif
  }

  /// Writes the files, and makes the system load them.
  ///
  /// - Throws: ``BackupError``; ``Failure`` if the system does not load them: the files are then as
  ///   they were before.
  func turnOn(at time: ClockTime) throws {
    try BlobFolder.make(archives)
    try BlobFolder.make(timer.removingLastComponent().string)
    let files = files(at: time)
    let earlier = try files.map { try AtomicFile.read($0.0) }
    do {
      for (path, text) in files { try Self.put(Array(text.utf8), at: path) }
      try load()
    } catch {
      // A timer that does not run would pass for a schedule.
      for ((path, _), bytes) in zip(files, earlier) { try Self.put(bytes, at: path) }
      throw error
    }
  }

  /// Writes a file, or removes it if it is to have no content.
  private static func put(_ bytes: [UInt8]?, at path: FilePath) throws {
    guard let bytes else { return try AtomicFile.remove(path) }
    try AtomicFile.save(to: path, replacing: true) { try $0(bytes.span) }
  }

  /// Makes the system load the files.
  private func load() throws {
    #if canImport(Darwin)
      _ = try HookProcess.run(["launchctl", "unload", timer.string], within: Self.patience)
      try tell(["launchctl", "load", timer.string], orElse: byCron)
    #else
      try tell(["systemctl", "--user", "daemon-reload"], orElse: byCron)
      try tell(["systemctl", "--user", "enable", "--now", "carpack-backup.timer"], orElse: byCron)
    #endif
  }

  private var byCron: String {
    "without such timers, use cron: 0 3 * * * \(program) backup --quiet"
  }

  /// Makes the system forget the timer, and removes the files.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: ``BackupError``; ``Failure`` if the system no longer knows the timer.
  func turnOff() throws -> Bool {
    guard isThere else { return false }
    #if canImport(Darwin)
      let words = ["launchctl", "unload", timer.string]
    #else
      let words = ["systemctl", "--user", "disable", "--now", "carpack-backup.timer"]
    #endif
    let fault = Result { try tell(words, orElse: "the timer's files were removed") }
    for path in Set([timer, service]) { try AtomicFile.remove(path) }
    try fault.get()
    return true
  }

  /// Runs a program of the system.
  ///
  /// - Throws: ``Failure`` with a hint if that fails.
  private func tell(_ words: [String], orElse hint: String) throws {
    let command = words.joined(separator: " ")
    let fault: String?
    do {
      fault = try HookProcess.run(words, within: Self.patience)
    } catch let failure as Failure {
      fault = failure.message
    }
    guard let fault else { return }
    throw Failure("\"\(command)\" \(fault)", hint: hint, status: .failure)
  }

  #if canImport(Darwin)
    private func files(at time: ClockTime) -> [(FilePath, String)] {
      let command = "cd '\(archives)' && exec '\(program)' backup --quiet"
      let text = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0"><dict>
        <key>Label</key><string>org.carpack.backup</string>
        <key>ProgramArguments</key>
        <array><string>/bin/sh</string><string>-c</string><string>\(Self.escaped(command))</string></array>
        <key>StartCalendarInterval</key>
        <dict><key>Hour</key><integer>\(time.hour)</integer><key>Minute</key><integer>\(time.minute)</integer></dict>
        <key>ProcessType</key><string>Background</string>
        </dict></plist>

        """
      return [(timer, text)]
    }

    private static func escaped(_ text: String) -> String {
      text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    }
  #else
    /// The units of the packages, with this program and this time.
    ///
    /// Archives may lie anywhere in the user's reach, so the service may write there.
    private func files(at time: ClockTime) -> [(FilePath, String)] {
      let confined = ["ProtectSystem=", "ProtectHome=", "ReadWritePaths=", "PrivateUsers="]
      let service = String(decoding: PackageResources.carpack_backup_service, as: UTF8.self)
        .split(separator: "\n", omittingEmptySubsequences: false)
        .filter { line in !line.hasPrefix("#") && !confined.contains { line.hasPrefix($0) } }
        .joined(separator: "\n")
        .replacing("ExecStart=carpack ", with: "ExecStart=\"\(escapedProgram)\" ")
      let timer = String(decoding: PackageResources.carpack_backup_timer, as: UTF8.self)
        .replacing("*-*-* 03:00:00", with: "*-*-* \(time.text):00")
      return [(self.service, service), (self.timer, timer)]
    }

    /// The program's path as systemd reads it.
    private var escapedProgram: String {
      program.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("%", with: "%%")
        .replacing("$", with: "$$")
    }
  #endif
}
