internal import ATProtocol
internal import ArgumentParser
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
    guard let configuration else { return Console.print("\(location): not there") }
    Console.print("\(location): sound")
    for entry in configuration.entries {
      let value = entry.setting.kind == .secret ? "(set)" : entry.values.joined(separator: ", ")
      Console.print("  [\(entry.section)] \(entry.setting.name) = \(value)")
    }
    if let list = configuration.accountList { Console.print("  [backup] accounts = \(list)") }
    for moment in Hooks.Moment.allCases {
      guard let words = configuration.hooks.programs[moment] else { continue }
      Console.print(
        "  [backup] \(moment.rawValue) runs \(words[0]) with \(Quantity.count(words.count - 1, "argument")), for \(Quantity.duration(seconds: Double(configuration.hooks.seconds))) at most"
      )
    }
    for account in configuration.accounts {
      let place = account.output.map { " into \($0)" } ?? ""
      let login = account.login ? ", with login" : ""
      let owners = account.keepsPrivateData ? " and private data" : ""
      Console.print("  account \(account.account.text)\(place)\(login)\(owners)")
    }
  }

  static let report = Report<(exists: Bool, all: Configuration)>("config", "`carpack config`.") {
    Field("file", "the configuration file") { _ in Configuration.location }
    Field("exists", "whether it is there") { $0.exists }
    Field(
      "settings", "defaults of options", each: { $0.all.entries },
      as: Fields {
        Field("table", "`defaults`, or a verb") { $0.section }
        Field("name", "the option") { $0.setting.name }
        Field("values", "its value, several of a list, none of a secret") {
          $0.setting.kind == .secret ? [] : $0.values
        }
        Field("secret", "whether the value is not shown") { $0.setting.kind == .secret }
        Field("line", "where it stands") { $0.line }
      })
    Field("accountList", "the file with accounts") { $0.all.accountList }
    Field(
      "accounts", "accounts that are backed up", each: { $0.all.accounts },
      as: Fields {
        Field("name", "handle or DID") { $0.account.text }
        Field("output", "its archive, or the folder of it") { $0.output }
        Field("login", "whether to log in") { $0.login }
        Field("private", "whether to keep what is the owner's alone") { $0.keepsPrivateData }
        Field("line", "where it stands") { $0.line }
      })
    Field(
      "hooks", "programs that are run after a backup", \.all.hooks,
      as: Fields {
        Field("afterSuccess", "the program that is run after success") {
          $0.programs[.success]?[0]
        }
        Field("onFailure", "the one for any other status") { $0.programs[.failure]?[0] }
        Field("seconds", "how long one may take") { $0.seconds }
      })
  }
}

extension Configuration {
  /// Checks what only the verbs know: whether an option takes its value.
  ///
  /// - Throws: ``Failure`` for the first that does not.
  fileprivate func check() throws {
    let verbs = Verbs.leaves.map { ($0.words[0], $0.verb, $0.verb.allSettings.map(\.name)) }
    for entry in entries {
      for (name, verb, settings) in verbs where settings.contains(entry.setting.name) {
        guard [Self.general, name].contains(entry.section) else { continue }
        // What stands for an archive or an account is not looked at.
        let before = verb.fault(in: ["x"])
        let after = verb.fault(in: entry.words + ["x"])
        guard let after, after != before else { continue }
        throw ConfigurationReader.fault(
          "\"\(entry.setting.name)\": \(after)", at: path, line: entry.line)
      }
      if entry.setting.kind == .secret {
        do {
          _ = try Healthcheck(entry.values[0])
        } catch let failure as Failure {
          throw ConfigurationReader.fault(
            failure.message, at: path, line: entry.line, hint: failure.hint)
        }
      }
    }
  }
}
