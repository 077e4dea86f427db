internal import ArgumentParser

/// A length of time as a person writes it: `90m`, `20h`, `7d`, `2w`.
struct Age: ExpressibleByArgument {
  /// The seconds.
  let seconds: Int64

  private static let units: [Character: Int64] = [
    "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800,
  ]
  /// The largest number that is read, so that no unit overflows.
  private static let maximumDigits = 6

  /// A length of time in seconds.
  init(seconds: Int64) { self.seconds = seconds }

  init?(argument: String) {
    guard let unit = argument.last.flatMap({ Self.units[$0] }) else { return nil }
    let digits = argument.dropLast()
    guard 1...Self.maximumDigits ~= digits.utf8.count,
      digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      let number = Int64(digits)
    else { return nil }
    seconds = number * unit
  }

  /// As it is written, in the largest unit that fits.
  var defaultValueDescription: String {
    let unit = Self.units.filter { seconds % $0.value == 0 }.max { $0.value < $1.value }
    return unit.map { "\(seconds / $0.value)\($0.key)" } ?? "\(seconds)s"
  }
}
