package import Terminal

/// The kind of a line on standard error: the word in front of it, and its colour on a terminal.
package enum Mark: String, CaseIterable {
  case error, damaged, lost, refused
  case incomplete, missing, unfinished, interrupted, warning, note
  case acceptedAsLost = "accepted as lost"
  case notGenuine = "not genuine"

  /// The word with a colon, in its colour.
  package var text: String {
    switch self {
    case .error, .damaged, .lost, .refused, .notGenuine: Console.red("\(rawValue):")
    default: Console.yellow("\(rawValue):")
    }
  }
}

extension Console {
  /// The most lines of one kind that are printed.
  package static let maximumTold = 20

  /// Prints on standard error what is wrong: `carpack: damaged: …`; with --json as an object.
  package static func say(_ mark: Mark, _ text: String) {
    guard isJSON else { return put(line: "carpack: \(mark.text) \(Subject.name(in: text))") }
    message(mark, text)
  }

  /// Prints what is wrong with the first of several things, and how many more there are.
  ///
  /// - Parameters:
  ///   - mark: what they have in common.
  ///   - count: how many there are.
  ///   - texts: them, or only the first.
  ///   - verb: the command that lists all.
  ///   - limit: how many are printed.
  package static func say(
    _ mark: Mark, _ texts: some Sequence<String>, of count: Int, all verb: String? = nil,
    limit: Int = maximumTold
  ) {
    for text in texts.prefix(limit) { say(mark, text) }
    let more = count - limit
    if more > 0 {
      say(mark, "and \(Quantity.grouped(more)) more\(verb.map { ": \($0)" } ?? "")")
    }
  }

  /// Prints what is wrong; of sentences that differ only in names and numbers the first three.
  ///
  /// - Parameters:
  ///   - sentences: the sentences, each with what it is about.
  ///   - verb: the command that lists all.
  package static func say(_ sentences: [(mark: Mark, text: String)], all verb: String) {
    let kinds = Dictionary(grouping: sentences.indices) { place in
      // CIDs, record keys and offsets are the words with digits.
      let words = sentences[place].text.split(separator: " ")
      return [sentences[place].mark.rawValue[...]]
        + words.filter { !$0.contains(where: \.isNumber) }
    }
    for places in kinds.values.sorted(by: { $0[0] < $1[0] }) {
      say(
        sentences[places[0]].mark, places.lazy.map { sentences[$0].text }, of: places.count,
        all: verb, limit: 3)
    }
  }

  /// Prints a line on standard error that is not about a problem; with --json as an object.
  package static func say(_ text: String) {
    if isJSON { message(.note, text) } else { put(line: text) }
  }

  /// Prints a line of results, with the archive's name in front of it where there are several.
  package static func print(named line: String) { print(Subject.name(in: line)) }

  private static func message(_ mark: Mark, _ text: String) {
    report.say((mark, text))
  }

  package static let report = Report<(mark: Mark, text: String)>(
    "message", "A message on standard error other than an error."
  ) {
    Field("kind", "the kind of message", .one(of: Mark.self)) { $0.mark.rawValue }
    Field("file", "the archive, where there are several") { _ in Subject.current }
    Field("text", "the words") { $0.text }
  }
}

/// The current archive, where a command reads several: messages name it.
package enum Subject {
  @TaskLocal package static var current: String?

  /// The text, with the archive's name in front of it, unless it is named already.
  package static func name(in text: String) -> String {
    guard let current, !text.contains(current) else { return text }
    return "\(current): \(text)"
  }
}
