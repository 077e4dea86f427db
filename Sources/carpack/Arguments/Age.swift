internal import ArgumentParser

/// A length of time as a person writes it: `90m`, `20h`, `7d`, `2w`.
struct Age: ExpressibleByArgument {
  /// The seconds.
  let seconds: Int64

  private static let units: [Character: Int64] = [
    "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800,
  ]
  /// The longest number that is read, so that no unit overflows.
  private static let maximumDigits = 6

  init?(argument: String) {
    guard let unit = argument.last.flatMap({ Self.units[$0] }) else { return nil }
    let digits = argument.dropLast()
    guard 1...Self.maximumDigits ~= digits.utf8.count,
      digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      let number = Int64(digits)
    else { return nil }
    seconds = number * unit
  }
}
