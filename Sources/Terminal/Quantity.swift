/// Sizes, counts and times as people write them.
package enum Quantity {
  /// Bytes in decimal units: "312 B", "1.4 MB".
  package static func bytes(_ count: some BinaryInteger) -> String {
    var value = Double(count)
    guard value >= 1000 else { return "\(count) B" }
    for unit in ["kB", "MB", "GB", "TB"] {
      value /= 1000
      if value < 999.5 || unit == "TB" { return "\(decimal(value)) \(unit)" }
    }
    return "\(count) B"
  }

  /// One decimal below 10, none above.
  private static func decimal(_ value: Double) -> String {
    guard value < 9.95 else { return grouped(Int(value.rounded())) }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// A count with thousands separators: "12,345".
  package static func grouped(_ number: Int) -> String {
    let digits = Array("\(number.magnitude)")
    var text = number < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return text
  }

  /// A count and what is counted: "1 record", "12,345 records".
  package static func count(_ number: Int, _ singular: String, _ plural: String? = nil) -> String {
    "\(grouped(number)) \(number == 1 ? singular : plural ?? singular + "s")"
  }

  /// A count and what is counted; nil for none.
  package static func some(_ number: Int, _ singular: String) -> String? {
    number > 0 ? count(number, singular) : nil
  }

  /// The sentence for a complete account: "all 1,655 records and 20 blobs are safe".
  package static func allSafe(records: Int, blobs: Int) -> String {
    guard records + blobs > 1 else { return "\(count(records, "record")) is safe" }
    let blobs = blobs > 0 ? " and \(count(blobs, "blob"))" : ""
    return "all \(count(records, "record"))\(blobs) are safe"
  }

  /// A time to wait, in two units at most: "12 s", "3 min 20 s", "10 min", "2 h 5 min".
  package static func duration(seconds: Double) -> String {
    let whole = Int(min(max(seconds.rounded(), 0), 1e9))
    let parts =
      whole < 3600
      ? [(whole / 60, "min"), (whole % 60, "s")] : [(whole / 3600, "h"), (whole / 60 % 60, "min")]
    let shown = parts.filter { $0.0 > 0 }.map { "\($0) \($1)" }
    return shown.isEmpty ? "0 s" : shown.joined(separator: " ")
  }

  /// How old something is, in its largest unit: "12 s", "3 min", "5 h", "12 d".
  package static func age(seconds: Int64) -> String {
    switch seconds {
    case ..<60: "\(seconds) s"
    case ..<3600: "\(seconds / 60) min"
    case ..<172_800: "\(seconds / 3600) h"
    default: "\(grouped(Int(seconds / 86_400))) d"
    }
  }

  /// A ratio in percent, with one decimal.
  package static func percent(_ part: UInt64, of whole: UInt64) -> String {
    guard whole > 0 else { return "0 %" }
    let tenths = Int((Double(part) * 1000 / Double(whole)).rounded())
    return "\(tenths / 10).\(tenths % 10) %"
  }
}
