internal import Terminal

/// What a shell reads to complete the command's words:
/// `carpack --generate-completion-script SHELL`.
///
/// Each script hands the line over to the command itself (``Completion``), so that it knows the
/// verbs and options of the carpack that is installed, and what is in the archive that is named on
/// the line.
package enum CompletionScript: String, CaseIterable {
  case bash, zsh, fish

  /// The script that the arguments ask for; nil if they ask for something else.
  ///
  /// - Throws: ``Failure`` for another shell, or none.
  package init?(asked arguments: [String]) throws {
    let option = "--generate-completion-script"
    guard arguments.first == option else { return nil }
    guard arguments.count == 2, let script = Self(rawValue: arguments[1]) else {
      let shells = Self.allCases.map { "\(option) \($0)" }.joined(separator: ", ")
      throw Failure("\(option) takes the name of a shell", hint: shells, status: .usage)
    }
    self = script
  }

  /// Its text.
  package var text: String {
    let bytes =
      switch self {
      case .bash: PackageResources.carpack_bash
      case .zsh: PackageResources.carpack_zsh
      case .fish: PackageResources.carpack_fish
      }
    return String(decoding: bytes.dropLast(), as: UTF8.self)
  }
}
