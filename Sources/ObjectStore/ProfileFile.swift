/// A file of profiles as Amazon's tools have it: `[name]` or `[profile name]`, and lines
/// `key = value`.
///
/// Source: [Shared config and credentials
/// files](https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html).
struct ProfileFile {
  private var sections: [String: [String: String]] = [:]

  /// Reads a file's text.
  ///
  /// A line that is neither a section nor `key = value` is skipped, as the tools do.
  init(_ text: String) {
    var section: String?
    for line in text.split(whereSeparator: \.isNewline) {
      // A line that is indented belongs to the value above, such as the settings of `s3 =`.
      guard let first = line.first, !first.isWhitespace else { continue }
      guard first != "#", first != ";" else { continue }
      if first == "[" {
        guard let end = line.firstIndex(of: "]") else {
          section = nil
          continue
        }
        let words = line[line.index(after: line.startIndex)..<end].split(
          whereSeparator: \.isWhitespace)
        section =
          words.count == 2 && words[0] == "profile"
          ? String(words[1]) : words.first.map(String.init)
        continue
      }
      guard let section, let equals = line.firstIndex(of: "=") else { continue }
      let key = Self.trimmed(line[..<equals]).lowercased()
      var value = Self.trimmed(line[line.index(after: equals)...])
      // Text after a blank and a comment mark is a comment.
      for mark in [" #", " ;", "\t#", "\t;"] {
        if let start = value.firstRange(of: mark) {
          value = Self.trimmed(value[..<start.lowerBound])
        }
      }
      sections[section, default: [:]][key] = value
    }
  }

  /// The settings of a profile; nil if it is missing.
  subscript(profile: String) -> [String: String]? { sections[profile] }

  private static func trimmed(_ text: some StringProtocol) -> String {
    var view = Substring(text)
    while view.first?.isWhitespace == true { view.removeFirst() }
    while view.last?.isWhitespace == true { view.removeLast() }
    return String(view)
  }
}
