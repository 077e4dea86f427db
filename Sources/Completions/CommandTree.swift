#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The verbs and their arguments, as the command describes itself.
package struct CommandTree: Decodable {
  /// The description of a command.
  package let command: Command

  /// A verb, or the command itself.
  package struct Command: Decodable {
    let commandName: String
    let abstract: String?
    let shouldDisplay: Bool?
    let subcommands: [Command]?
    package let arguments: [Argument]?

    /// The verb with this name.
    func subcommand(_ name: String) -> Command? {
      subcommands?.first { $0.commandName == name }
    }

    /// The option with this name, dashes included.
    func option(_ word: some StringProtocol) -> Argument? {
      arguments?.first { $0.kind != .positional && $0.words.contains { $0 == word } }
    }

    /// What it takes beside options, in order.
    var positionals: [Argument] { (arguments ?? []).filter { $0.kind == .positional } }
  }

  /// An option, a flag, or a positional argument.
  package struct Argument: Decodable {
    package enum Kind: String, Decodable { case positional, option, flag }

    package let kind: Kind
    /// The title of the group of options that it is part of; nil for one of the verb's own.
    package let sectionTitle: String?
    let names: [[String: String]]?
    package let valueName: String?
    package let abstract: String?
    package let isRepeating: Bool?
    package let isOptional: Bool?
    /// The kind of completion for its value: `file`, `directory` or `list`, and which.
    let completionKind: [String: [String: [String]]]?
    let allValues: [String]?
    let allValueDescriptions: [String: String]?

    /// Its names as they are typed.
    package var words: [String] {
      (names ?? []).map { ($0["kind"] == "long" ? "--" : "-") + ($0["name"] ?? "") }
    }

    /// Whether it names an archive.
    var isArchive: Bool {
      completionKind?["file"]?["extensions"]?.contains("zst") ?? (valueName == "archive")
    }
  }

  /// The verbs of a command that describes itself; nil if they cannot be read.
  package init?(_ description: String) {
    do {
      self = try JSONDecoder().decode(CommandTree.self, from: Data(description.utf8))
    } catch {
      // A shell that completes a line shows no errors.
      return nil
    }
  }
}
