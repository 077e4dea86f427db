/// A command line that is being typed: the words before the cursor, the one at it, and those after
/// it.
struct CompletionLine: Equatable {
  /// The words between the command's name and the cursor.
  var before: [String] = []
  /// The word at the cursor, as far as the cursor.
  var current = ""
  /// The words after the cursor.
  var after: [String] = []
  /// How many characters of ``current`` stay as they are, and are not part of the candidates.
  var replacedFrom = 0
  /// Whether the shell shows the descriptions of candidates.
  var showsDescriptions = true

  /// Reads a script's arguments: the shell's name, and the line in the form in which that shell has
  /// it.
  init?(_ arguments: [String]) {
    switch arguments.first {
    case "bash" where arguments.count == 4:
      self.init(bash: arguments[1], after: arguments[2], breaks: arguments[3])
    case "zsh", "fish":
      // The number of the word at the cursor, and all words, the command's name first.
      guard arguments.count >= 3, let index = Int(arguments[1]), index >= 1 else { return nil }
      self.init(words: Array(arguments.dropFirst(2)), index: index)
    default: return nil
    }
  }

  private init(words: [String], index: Int) {
    before = Array(words.prefix(index).dropFirst())
    current = index < words.count ? words[index] : ""
    after = Array(words.dropFirst(index).dropFirst())
  }

  /// Reads a line of bash, cut at the cursor.
  ///
  /// - Parameter breaks: At which characters readline divides a word: it replaces only what follows
  ///   the last of them.
  private init(bash text: String, after rest: String, breaks: String) {
    let split = ShellWords(text)
    guard let command = split.words.firstIndex(where: { !Self.isAssignment($0) }) else { return }
    before = Array(split.words[(command + 1)...])
    current = split.current
    after = ShellWords(rest + " ").words
    showsDescriptions = false
    if !split.isQuoted, let last = current.lastIndex(where: breaks.contains) {
      replacedFrom = current.distance(from: current.startIndex, to: last) + 1
    }
  }

  /// Whether a word before a command sets a variable for it.
  private static func isAssignment(_ word: String) -> Bool {
    guard let equals = word.firstIndex(of: "="), let first = word.first else { return false }
    return (first == "_" || first.isLetter)
      && word[..<equals].allSatisfy { $0 == "_" || $0.isLetter || $0.isNumber }
  }
}

/// A line divided into words as a shell does it, without expanding anything.
struct ShellWords: Equatable {
  /// The words that are complete.
  private(set) var words: [String] = []
  /// The last one, which is not.
  private(set) var current = ""
  /// Whether the last one has quotes or backslashes in it.
  private(set) var isQuoted = false

  init(_ line: String) {
    var quote: Character?
    var isEscaped = false
    var isWord = false
    func end() {
      if isWord { words.append(current) }
      (current, isWord, isQuoted) = ("", false, false)
    }
    for character in line {
      if isEscaped {
        // In double quotes a backslash stands for itself before most characters.
        if quote != nil, !"\"\\$`".contains(character) { current.append("\\") }
        current.append(character)
        isEscaped = false
      } else if character == "\\", quote != "'" {
        (isEscaped, isWord, isQuoted) = (true, true, true)
      } else if let open = quote {
        if character == open { quote = nil } else { current.append(character) }
      } else if character == "'" || character == "\"" {
        (quote, isWord, isQuoted) = (character, true, true)
      } else if character == " " || character == "\t" || character == "\n" {
        end()
      } else if ";|&()".contains(character) {
        // Another command begins.
        end()
        words = []
      } else {
        current.append(character)
        isWord = true
      }
    }
  }
}
