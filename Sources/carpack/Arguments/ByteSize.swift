internal import ArgumentParser

/// A number of bytes as people write it: `2GiB`, `500 MB`, `1.5 kB`, `4096`.
struct ByteSize: ExpressibleByArgument {
  /// The largest number: what a server sends goes to a disk, and none is larger.
  private static let maximum = 1 << 43

  let bytes: Int

  init(_ bytes: Int) { self.bytes = bytes }

  /// Reads a number, 1 at least, with or without a decimal point, and a unit in upper or lower
  /// case.
  init?(argument: String) {
    let number = argument.prefix { $0 >= "0" && $0 <= "9" || $0 == "." }
    let unit = argument[number.endIndex...].drop { $0 == " " }
    guard let factor = Self.factor(unit.lowercased()), let value = Double(number) else {
      return nil
    }
    let bytes = (value * Double(factor)).rounded()
    guard bytes >= 1, bytes <= Double(Self.maximum) else { return nil }
    self.bytes = Int(bytes)
  }

  private static func factor(_ unit: String) -> Int? {
    switch unit {
    case "", "b": 1
    case "k", "kb": 1_000
    case "m", "mb": 1_000_000
    case "g", "gb": 1_000_000_000
    case "t", "tb": 1_000_000_000_000
    case "kib": 1 << 10
    case "mib": 1 << 20
    case "gib": 1 << 30
    case "tib": 1 << 40
    default: nil
    }
  }

  /// The units in which defaults are shown.
  ///
  /// As a local list the optimiser unrolls it, in an order that differs from build to build.
  private static let units = [
    ("TiB", 1 << 40), ("GiB", 1 << 30), ("GB", 1_000_000_000), ("MB", 1_000_000),
  ]

  /// In the largest unit of which it is a whole number.
  var defaultValueDescription: String {
    for (unit, factor) in Self.units where bytes >= factor && bytes % factor == 0 {
      return "\(bytes / factor) \(unit)"
    }
    return "\(bytes) B"
  }
}
