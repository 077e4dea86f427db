internal import ATProtocol
internal import Notifications
internal import TOML
internal import Terminal

/// Reads a configuration file: what it does not know is an error, because a default that is
/// misspelt would go unnoticed.
struct ConfigurationReader {
  private var configuration: Configuration

  /// Reads a file.
  ///
  /// - Throws: ``Failure`` that names the file and the line.
  static func read(_ bytes: [UInt8], at path: String) throws -> Configuration {
    let root: TOMLTable
    do throws(TOMLError) {
      root = try TOMLDocument(bytes).root
    } catch {
      throw fault(error.what, at: path, line: error.line)
    }
    var reader = ConfigurationReader(configuration: Configuration(path: path))
    for entry in root.entries { try reader.readTable(entry) }
    return reader.configuration
  }

  // MARK: Tables

  /// The verbs that have a table of their own.
  private static var sections: [String] {
    Verbs.all.filter { !$0.allSettings.isEmpty }.map { $0.page.name }
  }

  /// What may stand in a table.
  private static func settings(in section: String) -> [Setting] {
    guard section == Configuration.general else {
      let settings = Verbs.all.first { $0.page.name == section }?.allSettings ?? []
      return settings + (section == "backup" ? ofBackup : [])
    }
    return Verbs.all.reduce(into: []) { all, verb in
      let known = all.map(\.name)
      all += verb.allSettings.filter { $0.isGeneral && !known.contains($0.name) }
    }
  }

  private mutating func readTable(_ entry: TOMLTable.Entry) throws {
    let name = entry.key
    if name == Configuration.accountTable { return try readAccounts(entry) }
    let settings = Self.settings(in: name)
    guard !settings.isEmpty else {
      let known = [Configuration.general, Configuration.accountTable] + Self.sections
      guard case .table = entry.value.content else {
        let tables = ([Configuration.general] + Self.sections).filter {
          Self.settings(in: $0).contains { $0.name == name }
        }
        throw fault(
          "\"\(name)\" is outside of all tables", line: entry.line,
          hint: tables.isEmpty
            ? nil : "it belongs under " + tables.map { "[\($0)]" }.joined(separator: " or "))
      }
      throw unknown("table [\(name)]", name, known, line: entry.line) {
        $0 == Configuration.accountTable ? "[[\($0)]]" : "[\($0)]"
      }
    }
    guard case .table(let table) = entry.value.content else {
      throw fault("\"\(name)\" must be a table, [\(name)]", line: entry.line)
    }
    for entry in table.entries {
      let (setting, values) = try read(entry, settings, in: "[\(name)]")
      if name == "backup", Self.ofBackup.contains(where: { $0.name == setting.name }) {
        readOfBackup(setting, values)
      } else {
        configuration.entries.append(
          .init(setting: setting, section: name, values: values, line: entry.line))
      }
    }
  }

  /// A setting of those that a table may have, and its values.
  private func read(
    _ entry: TOMLTable.Entry, _ known: [Setting], in table: String
  ) throws -> (Setting, [String]) {
    guard let setting = known.first(where: { $0.name == entry.key }) else {
      throw unknown(
        "setting \"\(entry.key)\" in \(table)", entry.key, known.map(\.name), line: entry.line
      ) { "\"\($0)\"" }
    }
    return (setting, try values(entry, setting.kind))
  }

  /// What `[backup]` has besides options.
  private static let ofBackup =
    [Setting(name: "accounts", kind: .path), Setting(name: "hook-timeout", kind: .age)]
    + Hooks.Moment.allCases.map { Setting(name: $0.rawValue, kind: .program) }

  private mutating func readOfBackup(_ setting: Setting, _ values: [String]) {
    switch setting.kind {
    case .path: configuration.accountList = values[0]
    case .age: configuration.hooks.seconds = Age(argument: values[0])?.seconds ?? 0
    default:
      if let moment = Hooks.Moment(rawValue: setting.name) {
        configuration.hooks.programs[moment] = values
      }
    }
  }

  /// A program and its arguments.
  private func program(_ entry: TOMLTable.Entry) throws -> [String] {
    let wanted = wanted(
      "a list of a program and its arguments, such as [\"~/bin/copy\", \"--all\"]; no shell reads it",
      entry)
    guard case .array(let items) = entry.value.content, !items.isEmpty else { throw wanted }
    var words: [String] = []
    for item in items {
      guard case .string(let text) = item.content, !text.utf8.contains(0) else { throw wanted }
      words.append(text)
    }
    guard !words[0].isEmpty else { throw wanted }
    // A program without a folder is looked for as a shell would; one in a folder must not depend on
    // the current one.
    if words[0].contains("/") {
      guard let path = Configuration.expanded(words[0]) else {
        throw self.wanted("a program with a path from / or ~/, or a name alone", entry)
      }
      words[0] = path
    }
    return words
  }

  // MARK: Accounts

  private static let ofAccount = [
    Setting(name: "name", kind: .text), Setting(name: "output", kind: .path),
    Setting(name: "login", kind: .flag), Setting(name: "password-file", kind: .path),
    Setting(name: "private", kind: .flag),
  ]

  private mutating func readAccounts(_ entry: TOMLTable.Entry) throws {
    guard case .array(let items) = entry.value.content else {
      throw fault("an account begins with [[account]]", line: entry.line)
    }
    for item in items {
      guard case .table(let table) = item.content else {
        throw fault("an account begins with [[account]]", line: item.line)
      }
      let account = try readAccount(table, line: item.line)
      let same = configuration.accounts.first { $0.account == account.account }
      if let same {
        throw fault(
          "\(account.account.text) is listed twice, first on line \(same.line)", line: item.line)
      }
      configuration.accounts.append(account)
    }
  }

  private func readAccount(_ table: TOMLTable, line: Int) throws -> ConfiguredAccount {
    var values: [String: String] = [:]
    for entry in table.entries {
      let (setting, found) = try read(entry, Self.ofAccount, in: "[[account]]")
      values[setting.name] = found[0]
    }
    guard let name = values["name"] else {
      throw fault(
        "an account needs its name", line: line, hint: "name = \"alice.example.com\", or its DID")
    }
    let identifier: ATIdentifier
    do {
      identifier = try ATIdentifier(account: name)
    } catch let failure as Failure {
      throw fault(failure.message, line: table["name"]?.line ?? line, hint: failure.hint)
    }
    let account = ConfiguredAccount(
      account: identifier, output: values["output"], login: values["login"] == "true",
      passwordFile: values["password-file"], keepsPrivateData: values["private"] == "true",
      line: line)
    guard account.login || account.passwordFile == nil else {
      throw fault("password-file goes with login = true", line: line)
    }
    guard account.login || !account.keepsPrivateData else {
      throw fault("private = true goes with login = true", line: line)
    }
    return account
  }

  // MARK: Values

  private func values(_ entry: TOMLTable.Entry, _ kind: Setting.Kind) throws -> [String] {
    switch kind {
    case .flag, .choice:
      guard case .boolean(let flag) = entry.value.content else {
        throw wanted("true or false", entry)
      }
      return ["\(flag)"]
    case .path: return [try path(entry)]
    case .text, .secret: return [try text(entry.value, of: entry)]
    case .program: return try program(entry)
    case .age:
      guard case .string(let text) = entry.value.content, let age = Age(argument: text),
        1...Hooks.maximumSeconds ~= age.seconds
      else { throw wanted("a time in quotation marks, such as \"10m\", up to 7 days", entry) }
      return [text]
    case .list:
      guard case .array(let items) = entry.value.content else {
        return [try text(entry.value, of: entry)]
      }
      return try items.map { try text($0, of: entry) }
    }
  }

  private func text(_ value: TOMLValue, of entry: TOMLTable.Entry) throws -> String {
    switch value.content {
    // A zero byte would end an argument or a path early.
    case .string(let text) where !text.utf8.contains(0) && !text.isEmpty: return text
    case .integer(let number): return "\(number)"
    case .float(let number): return "\(number)"
    default: throw wanted("a text or a number", entry)
    }
  }

  private func path(_ entry: TOMLTable.Entry) throws -> String {
    guard case .string(let text) = entry.value.content, !text.utf8.contains(0),
      let path = Configuration.expanded(text)
    else { throw wanted("a path that begins with / or ~/", entry) }
    return path
  }

  // MARK: Faults

  private func wanted(_ what: String, _ entry: TOMLTable.Entry) -> Failure {
    fault("\"\(entry.key)\" takes \(what)", line: entry.line)
  }

  private func unknown(
    _ what: String, _ word: String, _ known: [String], line: Int, _ show: (String) -> String
  ) -> Failure {
    let near = Suggestion.words(like: word, among: known).map(show)
    return fault(
      "there is no \(what)", line: line,
      hint: near.isEmpty
        ? "there are " + known.map(show).joined(separator: ", ")
        : "did you mean \(near.joined(separator: " or "))?")
  }

  private func fault(_ what: String, line: Int, hint: String? = nil) -> Failure {
    Self.fault(what, at: configuration.path, line: line, hint: hint)
  }

  /// The error for a line of the file.
  static func fault(_ what: String, at path: String, line: Int, hint: String? = nil) -> Failure {
    let place = "\(path), line \(line)"
    return Failure(
      "\(place): \(what)", hint: hint ?? "--\(Configuration.absence) ignores the file",
      status: .usage, at: place)
  }
}
