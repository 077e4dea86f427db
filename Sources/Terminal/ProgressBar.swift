/// How much of a piece of work is done, as a bar of block characters.
package enum ProgressBar {
  /// How many characters it has.
  package static let width = 20

  /// Whether the terminal shows such characters: it reads UTF-8, and is not the kernel's console,
  /// whose font lacks most of them.
  private static let isShown: Bool = {
    let locale = Host.environment("LC_ALL", "LC_CTYPE", "LANG")?.value.lowercased() ?? ""
    return Console.canRedraw && (locale.contains("utf-8") || locale.contains("utf8"))
      && Host.environment("TERM")?.value != "linux"
  }()

  /// Words with a bar in front, where the terminal shows one and it is known how much there is.
  package static func before(_ words: String, _ done: UInt64, of total: UInt64) -> String {
    isShown && total > 0 ? "\(text(done, of: total)) \(words)" : words
  }

  /// The bar: full characters, one in eight steps, and dots.
  ///
  /// - Precondition: `total` is not 0.
  package static func text(_ done: UInt64, of total: UInt64) -> String {
    let eighths = Int(Double(min(done, total)) / Double(total) * Double(8 * width))
    let (full, rest) = eighths.quotientAndRemainder(dividingBy: 8)
    let partial = rest > 0 ? String(steps[rest - 1]) : ""
    let bar = String(repeating: "█", count: full) + partial
    return bar + String(repeating: "·", count: width - bar.count)
  }

  private static let steps: [Character] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"]
}
