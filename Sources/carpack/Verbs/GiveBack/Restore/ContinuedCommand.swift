internal import Failures
internal import Terminal

/// The command line that continues this process after it has stopped.
///
/// Codes from a mail are valid once and left out, and an invite code is not shown.
enum ContinuedCommand {
  /// Options of a move, each with whether it has a value.
  private static let moving = [
    ("--to", true), ("--new-password-file", true), ("--email", true), ("--handle", true),
    ("--invite", true), ("--recovery-key", true), ("--signing-key", true), ("--accept", true),
    ("--yes", true), ("--abandon-old", false), ("--deactivate-old", false),
    ("--drop-old-keys", false), ("--login", false),
  ]
  /// Options that may be given several times.
  private static let repeated = ["--yes", "--accept"]

  /// The command as a line for a shell.
  static func line(_ continuation: RestoreContinuation) -> String {
    var words = Host.arguments
    let end = words.firstIndex(of: "--") ?? words.endIndex
    let operands = words[end...]
    words = Array(words[..<end])
    for code in ["--mail-code", "--auth-factor-token"] { remove(code, hasValue: true, &words) }
    if remove("--invite", hasValue: true, &words) { words += ["--invite", "CODE"] }
    if continuation.staysAtHome {
      if words.first == "rehearse" { words[0] = "restore" }
      for (name, hasValue) in moving { remove(name, hasValue: hasValue, &words) }
    }
    for (name, value) in continuation.options {
      if !repeated.contains(name) { remove(name, hasValue: value != nil, &words) }
      words += [name] + (value.map { [$0] } ?? [])
    }
    return "carpack " + (words + operands).map(\.shellWord).joined(separator: " ")
  }

  /// Removes an option; returns whether it was there.
  @discardableResult
  private static func remove(_ name: String, hasValue: Bool, _ words: inout [String]) -> Bool {
    var wasThere = false
    while let place = words.firstIndex(where: { $0 == name || $0.hasPrefix("\(name)=") }) {
      let isTwoWords = hasValue && words[place] == name && place + 1 < words.count
      words.removeSubrange(place...(isTwoWords ? place + 1 : place))
      wasThere = true
    }
    return wasThere
  }
}
