internal import ATProtocol
internal import ArgumentParser
internal import Notifications
internal import Reports
internal import Terminal

/// `carpack config`: what the configuration file sets, and whether all of it can be used.
struct ConfigCommand: ReportingCommand {
  static let page = ManualPage("config", PackageResources.config_txt)

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let configuration = try Configuration.ofUser()
    if let configuration { try configuration.check() }
    guard json else { return printText(configuration) }
    Self.report.print((configuration != nil, configuration ?? Configuration(path: "")))
  }

  private func printText(_ configuration: Configuration?) {
    guard let location = Configuration.location else {
      return Console.print("no configuration: neither HOME nor XDG_CONFIG_HOME is set")
    }
    guard let configuration else {
      let isIgnored = CommandWords.has(Configuration.absence)
      return Console.print("\(location): \(isIgnored ? "ignored" : "not there")")
    }
    Console.print("\(location): valid")
    var lines = configuration.entries.map { entry in
      let value = entry.setting.kind == .secret ? "(set)" : entry.values.joined(separator: ", ")
      return "[\(entry.section)] \(entry.setting.name) = \(value)"
    }
    if let list = configuration.accountList { lines.append("[backup] accounts = \(list)") }
    let hooks = configuration.hooks
    for moment in Hooks.Moment.allCases {
      guard let words = hooks.programs[moment] else { continue }
      lines.append(
        "[backup] \(moment.rawValue) runs \(words[0]) with \(Quantity.count(words.count - 1, "argument")), for \(Quantity.duration(seconds: Double(hooks.seconds))) at most"
      )
    }
    lines += configuration.accounts.map { account in
      let place = account.output.map { " into \($0)" } ?? ""
      let login = account.login ? ", with login" : ""
      let owners = account.keepsPrivateData ? " and private data" : ""
      return "account \(account.account.text)\(place)\(login)\(owners)"
    }
    for line in lines { Console.print("  \(line)") }
  }

  static let report = Report<(exists: Bool, all: Configuration)>("config", "`carpack config`.") {
    Field("file", "the configuration file") { _ in Configuration.location }
    Field("exists", "whether it exists") { $0.exists }
    Field(
      "settings", "defaults of options", each: { $0.all.entries },
      as: Fields {
        Field("table", "`defaults`, or a verb") { $0.section }
        Field("name", "the option") { $0.setting.name }
        Field("values", "its values; empty for a secret") {
          $0.setting.kind == .secret ? [] : $0.values
        }
        Field("secret", "whether the value is not shown") { $0.setting.kind == .secret }
        Field("line", "its line in the file") { $0.line }
      })
    Field("accountList", "the file with accounts") { $0.all.accountList }
    Field(
      "accounts", "accounts that are backed up", each: { $0.all.accounts },
      as: Fields {
        Field("name", "handle or DID") { $0.account.text }
        Field("output", "its archive, or the folder for it") { $0.output }
        Field("login", "whether to log in") { $0.login }
        Field("private", "whether to keep private data") { $0.keepsPrivateData }
        Field("line", "its line in the file") { $0.line }
      })
    Field(
      "hooks", "programs to run after a backup", \.all.hooks,
      as: Fields {
        Field("afterSuccess", "the program that is run after success") {
          $0.programs[.success]?[0]
        }
        Field("onFailure", "the one for any other status") { $0.programs[.failure]?[0] }
        Field("seconds", "how long one may take") { $0.seconds }
      })
  }
}
