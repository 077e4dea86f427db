internal import Terminal

/// The words of a command line.
enum CommandWords {
  /// Those before `--`, after which nothing is an option.
  static func options(_ words: [String]) -> ArraySlice<String> { words.prefix { $0 != "--" } }

  /// Whether one of these options is among them, in any of its forms.
  static func contain(
    _ words: some Sequence<String>, _ names: [String], letter: Character? = nil
  ) -> Bool {
    words.contains { word in
      if let letter, word.hasPrefix("-"), word.dropFirst().first == letter { return true }
      return names.contains { name in
        let option = name.count == 1 ? "-\(name)" : "--\(name)"
        return word == option || word.hasPrefix("\(option)=")
      }
    }
  }

  /// Whether the command line of this process has one of these options.
  static func has(_ names: String..., letter: Character? = nil) -> Bool {
    contain(options(Host.arguments), names, letter: letter)
  }
}
