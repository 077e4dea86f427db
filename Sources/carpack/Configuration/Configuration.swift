internal import ATProtocol
internal import Files
internal import LibC
internal import Notifications
internal import SystemPackage
internal import TOML
internal import Terminal

/// What the user's configuration file says: defaults of options, accounts, and what follows a
/// backup.
struct Configuration {
  /// A setting in the file.
  struct Entry {
    let setting: Setting
    /// The table that has it: `defaults`, or a verb.
    let section: String
    /// Its value as words of a command line have it; several of a list.
    let values: [String]
    let line: Int

    /// The words that say the same on a command line.
    var words: [String] { setting.words(values) }
  }

  let path: String
  var entries: [Entry] = []
  var accounts: [ConfiguredAccount] = []
  /// The file with more accounts, one a line.
  var accountList: String?
  /// Programs that are run after a backup, and how long each may take.
  var hooks = Hooks()

  /// What is set of a verb's settings: in the table of its name, or else for all.
  func entries(for settings: [Setting], in section: String) -> [Entry] {
    settings.compactMap { setting in
      let found = entries.filter { $0.setting.name == setting.name }
      return found.first { $0.section == section } ?? found.first { $0.section == Self.general }
    }
  }

  /// The table for all verbs.
  static let general = "defaults"
  /// The lists of tables for accounts.
  static let accountTable = "account"

  // MARK: Where it is

  /// The path of the file; nil if the user has no home folder.
  static let location: String? = {
    // The specification of these folders says that a relative path does not count.
    let folder =
      Host.environment("XDG_CONFIG_HOME").map(\.value).flatMap { $0.hasPrefix("/") ? $0 : nil }
      ?? home.map { "\($0)/.config" }
    return folder.map { "\($0)/carpack/config.toml" }
  }()

  private static let home = Host.environment("HOME").map(\.value).flatMap {
    $0.hasPrefix("/") ? $0 : nil
  }

  /// A path of the file, with the user's folder in the place of `~`; nil if it is relative.
  static func expanded(_ path: String) -> String? {
    if path.hasPrefix("/") { return path }
    guard path.hasPrefix("~/"), let home else { return nil }
    return home + path.dropFirst()
  }

  /// The error for a backup without accounts, on the command line or here.
  static var nothingToBackUp: Failure {
    Failure(
      "name an account, or use --accounts or --all",
      hint: location.map {
        "accounts that are listed in \($0) need not be named; \"carpack backup --help\" shows what it takes"
      } ?? "\"carpack backup --help\" shows what it takes", status: .usage)
  }

  /// Whether the file exists, and `--no-config` is not set.
  static var isThere: Bool {
    guard !CommandWords.has(absence), let location else { return false }
    return unsafe access(location, F_OK) == 0
  }

  /// The option that ignores the file.
  static let absence = "no-config"

  /// What the file says, read once when it is first asked for; nil without a file, and with
  /// `--no-config`.
  ///
  /// - Throws: ``Failure``.
  static func ofUser() throws -> Configuration? { try loaded.get() }

  private static let loaded = Result<Configuration?, any Error> {
    guard !CommandWords.has(absence), let location else { return nil }
    let bytes: [UInt8]?
    do throws(TrustedFile.Fault) {
      bytes = try TrustedFile.read(location, limit: TOMLDocument.maximumLength)
    } catch {
      throw failure(error, location)
    }
    return try bytes.map { try ConfigurationReader.read($0, at: location) }
  }

  /// Why the file is not read.
  private static func failure(_ fault: TrustedFile.Fault, _ path: String) -> Failure {
    let (power, hint) = ("\(path) can run programs, and", doWithout)
    func named(_ place: String) -> String { place == path ? "it" : place }
    return switch fault {
    case .notAFile: Failure("\(path) is not a file", hint: hint, status: .noInput, at: path)
    case .belongsToAnother(let place):
      Failure(
        "\(power) \(named(place)) belongs to another user", hint: hint, status: .refused, at: place)
    case .writableByOthers(let place):
      Failure(
        "\(power) \(named(place)) may be written to by others",
        hint: "chmod go-w \(place.shellWord); \(hint)", status: .refused, at: place)
    case .unreadable(let error):
      Failure(
        "could not read \(path): \(error)", hint: hint,
        status: error == .ioError ? .ioError : .noInput, at: path)
    }
  }

  /// What to do about a file that cannot be used.
  static let doWithout = "--\(absence) ignores the configuration file"
}

/// An account that the file lists, and what holds for it alone.
struct ConfiguredAccount {
  let account: ATIdentifier
  /// Its archive, or the folder for it.
  var output: String?
  /// Whether to log in as the account, and the file with its app password.
  var login = false
  var passwordFile: String?
  /// Whether to keep private data.
  var keepsPrivateData = false
  let line: Int

  /// Whether it is backed up differently from the rest.
  var isSpecial: Bool { output != nil || login }
}
