internal import Terminal

/// What the configuration file may set: an option of the command line, under its name.
struct Setting {
  /// What its value is.
  enum Kind {
    /// `true`, or `false` for nothing.
    case flag
    /// A text or a number.
    case text
    /// A path, from `/` or `~/`: a relative one would mean another file in every folder.
    case path
    /// A text, or a list of them.
    case list
    /// A text that is shown to no one.
    case secret
  }

  let name: String
  let kind: Kind
  /// The verbs that take it.
  let verbs: [String]
  /// Whether it may be set for all of them, under `[defaults]`.
  var isGeneral = false
  /// The variables that give it, too: they come before the file.
  var variables: [String] = []
  /// Options of which one on the line leaves out all of the file.
  var rivals: [String] = []
  /// Its short name.
  var letter: Character?

  private static let network = [
    "backup", "fill", "fetch repo", "fetch blob", "fetch blobs", "fetch latest", "fetch document",
    "fetch plc-log", "resolve",
  ]
  private static let keeps = [
    "keep-last", "keep-daily", "keep-weekly", "keep-monthly", "keep-yearly",
  ]

  /// All of them.
  static let all: [Setting] =
    [
      Setting(
        name: "quiet", kind: .flag,
        verbs: network + [
          "missing", "pack", "status", "info", "log", "ls", "diff", "find", "stats", "verify",
          "inspect", "config", "extract", "prune", "compact", "merge", "repair",
        ], isGeneral: true, letter: "q"),
      Setting(
        name: "plc", kind: .text, verbs: network, isGeneral: true,
        variables: ["CARPACK_PLC_URL", "ATP_PLC_HOST"]),
      Setting(
        name: "resolver", kind: .text, verbs: network, isGeneral: true,
        variables: ["CARPACK_HANDLE_RESOLVER"]),
      Setting(
        name: "dns", kind: .text, verbs: network, isGeneral: true, variables: ["CARPACK_DNS_URL"]),
      Setting(
        name: "pds", kind: .text, verbs: network, isGeneral: true, variables: ["CARPACK_PDS_URL"]),
      Setting(
        name: "ca-file", kind: .path, verbs: network, isGeneral: true,
        variables: ["CARPACK_CA_FILE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"]),
      Setting(
        name: "pin", kind: .list, verbs: network, isGeneral: true, variables: ["CARPACK_PINS"]),
      Setting(name: "rate", kind: .text, verbs: network, isGeneral: true),
      Setting(name: "connections", kind: .text, verbs: network, isGeneral: true),
      Setting(name: "timeout", kind: .text, verbs: network, isGeneral: true),
      Setting(name: "attempts", kind: .text, verbs: network, isGeneral: true),
      Setting(name: "verbose", kind: .flag, verbs: network, isGeneral: true),
      Setting(
        name: "level", kind: .text,
        verbs: ["backup", "fill", "pack", "compact", "merge", "repair"], isGeneral: true),
      Setting(name: "max-repo", kind: .text, verbs: ["backup", "fetch repo"], isGeneral: true),
      Setting(
        name: "max-blob", kind: .text, verbs: ["backup", "fill", "fetch blob"], isGeneral: true),
      Setting(name: "compressed", kind: .flag, verbs: ["backup", "fill"], isGeneral: true),
      Setting(name: "quick", kind: .flag, verbs: ["backup", "fill", "verify"]),
      Setting(
        name: "output", kind: .path, verbs: ["backup"], rivals: ["into"], letter: "o"),
      Setting(name: "into", kind: .path, verbs: ["backup"], rivals: ["output", "o"]),
      Setting(name: "jobs", kind: .text, verbs: ["backup"]),
      Setting(name: "max-age", kind: .text, verbs: ["backup", "status"]),
      Setting(name: "healthcheck", kind: .secret, verbs: ["backup"]),
      Setting(name: "cars", kind: .flag, verbs: ["verify"]),
      Setting(name: "names", kind: .text, verbs: ["extract"]),
      Setting(name: "no-times", kind: .flag, verbs: ["extract"]),
      Setting(name: "extras", kind: .flag, verbs: ["pack"]),
      Setting(name: "long", kind: .flag, verbs: ["ls"], letter: "l"),
    ] + keeps.map { Setting(name: $0, kind: .text, verbs: ["prune"], rivals: keeps) }

  /// Those of a verb.
  static func all(of verb: String) -> [Setting] { all.filter { $0.verbs.contains(verb) } }

  /// The tables that it may stand in, but for the one for all verbs: of `fetch repo` that is
  /// `fetch`.
  var sections: [String] { verbs.map { String($0.prefix { $0 != " " }) } }

  /// The word that takes back a flag which the file sets.
  var negation: String? { kind == .flag && !name.hasPrefix("no-") ? "--no-\(name)" : nil }

  /// Whether the words of a command line, or a variable, say it already.
  func isSaid(by words: some Sequence<String>) -> Bool {
    if Host.environment(variables) != nil { return true }
    return CommandWords.contain(words, [name] + rivals, letter: letter)
  }
}

/// The words of a command line.
enum CommandWords {
  /// Those before `--`, behind which nothing is an option.
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
