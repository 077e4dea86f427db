/// What a shell reads to complete the command's words:
/// `carpack --generate-completion-script SHELL`.
///
/// Each script hands the line over to the command itself (``Completion``), so that it knows the
/// verbs and options of the carpack that is installed, and what is in the archive that is named on
/// the line.
package enum CompletionScript: String {
  case bash, zsh, fish

  /// The script that the arguments ask for.
  package init?(asked arguments: [String]) {
    guard arguments.count == 2, arguments[0] == "--generate-completion-script" else { return nil }
    self.init(rawValue: arguments[1])
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
