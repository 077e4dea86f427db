/// A session on the command line as it has to go: what is typed, what comes back, and how each
/// command ends.
///
/// ```
/// # A word to the reader.
/// $ carpack inspect repo.car
/// repo.car: complete and well-formed
///   CAR        [..], version 1, [..] blocks
/// [...]
/// ! what comes on standard error
/// ? 10
/// ```
/// A line after `$` goes to the shell. Lines after it are its output, those with `! ` in front what
/// it says on standard error. `[..]` stands for anything within a line, a line of `[...]` for any
/// lines. `? 10` is the exit status; without one it is 0.
package struct Transcript: Sendable {
  /// One command and what is expected of it.
  package struct Step: Sendable {
    /// What is typed.
    package let command: String
    /// The number of its line in the file.
    package let line: Int
    /// The lines expected on standard output.
    package fileprivate(set) var output: [String] = []
    /// The lines expected on standard error.
    package fileprivate(set) var errors: [String] = []
    /// The exit status expected.
    package fileprivate(set) var status: Int32 = 0
  }

  /// The commands in order.
  package private(set) var steps: [Step] = []

  /// Reads a transcript.
  package init(_ text: String) {
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      if line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2)), line: index + 1))
      } else if let last = steps.indices.last, !line.hasPrefix("#"), !line.isEmpty {
        if line.hasPrefix("? ") {
          steps[last].status = Int32(line.dropFirst(2)) ?? -1
        } else if line.hasPrefix("! ") {
          steps[last].errors.append(String(line.dropFirst(2)))
        } else {
          steps[last].output.append(String(line))
        }
      }
    }
  }

  /// Whether lines are as expected, wildcards considered.
  ///
  /// Empty lines count for nothing.
  package static func matches(_ expected: [String], _ text: String) -> Bool {
    let lines = text.split(separator: "\n").map(String.init)
    return matches(expected[...], lines[...])
  }

  private static func matches(_ expected: ArraySlice<String>, _ lines: ArraySlice<String>) -> Bool {
    guard let first = expected.first else { return lines.isEmpty }
    if first == "[...]" {
      return (lines.startIndex...lines.endIndex).contains {
        matches(expected.dropFirst(), lines[$0...])
      }
    }
    guard let line = lines.first, matches(line: first, line) else { return false }
    return matches(expected.dropFirst(), lines.dropFirst())
  }

  /// Whether a line is as expected: its parts between wildcards come in order, the first and the
  /// last at the ends.
  private static func matches(line expected: String, _ line: String) -> Bool {
    let parts = expected.split(separator: "[..]", omittingEmptySubsequences: false)
    guard parts.count > 1 else { return expected == line }
    guard line.hasPrefix(parts[0]), line.hasSuffix(parts[parts.count - 1]) else { return false }
    var rest = line.dropFirst(parts[0].count)
    guard rest.count >= parts[parts.count - 1].count else { return false }
    rest = rest.dropLast(parts[parts.count - 1].count)
    for part in parts.dropFirst().dropLast() where !part.isEmpty {
      guard let found = rest.firstRange(of: part) else { return false }
      rest = rest[found.upperBound...]
    }
    return true
  }
}
