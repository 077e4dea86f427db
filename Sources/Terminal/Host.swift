package import ATProtocol
internal import CArguments
internal import LibC
internal import SystemPackage

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// What the machine says about itself and the moment.
///
/// With `SOURCE_DATE_EPOCH` set (seconds since 1970) the moment is that one and nothing takes any
/// time, so that the same input gives the same archive, byte for byte.
package enum Host {
  private static let fixedSeconds: Int? = {
    guard let text = unsafe getenv("SOURCE_DATE_EPOCH") else { return nil }
    return unsafe Int(String(cString: text))
  }()

  /// The arguments of the process, without the name of the program.
  ///
  /// Swift 6.3 reads its `CommandLine.arguments` from `/proc/self`, and has none where `/proc` is
  /// not mounted.
  package static var arguments: [String] {
    let count = carpack_argument_count()
    guard count > 0 else { return Array(CommandLine.arguments.dropFirst()) }
    return (1..<max(1, count)).compactMap { number in
      unsafe carpack_argument(number).map { unsafe String(cString: $0) }
    }
  }

  /// The time in RFC 3339, UTC, to the second.
  package static var now: String {
    let date = fixedSeconds.map { Date(timeIntervalSince1970: Double($0)) } ?? Date()
    return date.formatted(.iso8601)
  }

  /// The time as a number.
  ///
  /// - Throws: ``Failure`` if the clock cannot be read.
  package static var unixTime: UnixTime {
    get throws {
      guard let now = UnixTime(now) else {
        throw Failure("could not read the clock", status: .failure)
      }
      return now
    }
  }

  /// The local time of day in this many seconds: `14:05:30`.
  package static func timeOfDay(inSeconds seconds: Double) -> String {
    var moment = time(nil) + Int(seconds.rounded(.up))
    var parts = unsafe tm()
    guard unsafe localtime_r(&moment, &parts) != nil else { return now }
    return unsafe [parts.tm_hour, parts.tm_min, parts.tm_sec]
      .map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
  }

  /// The first of these environment variables that has text.
  package static func environment(_ names: String...) -> (name: String, value: String)? {
    environment(names)
  }

  /// The first of these environment variables that has text.
  package static func environment(_ names: [String]) -> (name: String, value: String)? {
    for name in names {
      guard let text = unsafe getenv(name) else { continue }
      let value = unsafe String(cString: text)
      if !value.isEmpty { return (name, value) }
    }
    return nil
  }

  /// The machine's name; "unknown" if the system does not say.
  package static var name: String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The number of this process.
  package static var processNumber: Int { Int(getpid()) }

  /// The operating system.
  package static var system: String {
    #if os(macOS)
      "macOS"
    #elseif os(Linux)
      "Linux"
    #else
      "unknown"
    #endif
  }

  /// Milliseconds since some moment.
  @Sendable package static func milliseconds() -> Int {
    guard fixedSeconds == nil else { return 0 }
    var moment = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &moment)
    return Int(moment.tv_sec) * 1000 + Int(moment.tv_nsec) / 1_000_000
  }
}
