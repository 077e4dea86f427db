internal import ATProtocol
internal import ArgumentParser

/// `carpack config`: what the configuration file sets, and whether all of it can be used.
struct ConfigCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    _superCommandName: Carpack.name,
    abstract: "Check the configuration file, and say what it sets.",
    discussion: Help.discussion(
      """
      The file sets defaults of options, the accounts that "carpack backup" backs up when none are named, and programs that are run afterwards. It need not exist. Options on the command line come before variables of the environment, and these before the file; "--no-quiet" takes back a flag that the file sets, and --no-config does without all of it.

      [defaults] is for every verb that has the option, a table such as [backup] or [verify] for one verb. The names are those of the options without the dashes. [[account]] lists an account: its name, and what holds for it alone, such as output or login. [backup] may also have after-success and on-failure, each a program with its arguments, which no shell reads. One that takes longer than hook-timeout ("10m" if that is not set) is ended.

      The file can run programs, so it is refused if it, its folder or a folder on the way there may be written to by others. Secrets are not shown: neither the URL of a health check nor the arguments of programs.

      FILES
        ~/.config/carpack/config.toml  the file; below $XDG_CONFIG_HOME instead of ~/.config, if that is set

      Exit status: 0 all of it can be used, or there is no file, 13 others may write to it, 64 it is malformed or sets what is not known.
      """,
      examples: [
        "carpack config", "carpack config --json",
        "XDG_CONFIG_HOME=/etc carpack config",
      ]))

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let configuration = try Configuration.ofUser()
    if let configuration { try configuration.check() }
    guard json else { return printText(configuration) }
    Console.printJSON(.config) { json in
      json.field("file", Configuration.location)
      json.field("exists", configuration != nil)
      Self.write(configuration ?? Configuration(path: ""), to: &json)
    }
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

  private static func write(_ configuration: Configuration, to json: inout JSONWriter) {
    json.beginArray("settings")
    for entry in configuration.entries {
      json.beginObject()
      json.field("table", entry.section)
      json.field("name", entry.setting.name)
      json.field("values", entry.setting.kind == .secret ? [] : entry.values)
      json.field("secret", entry.setting.kind == .secret)
      json.field("line", entry.line)
      json.endObject()
    }
    json.endArray()
    json.field("accountList", configuration.accountList)
    json.beginArray("accounts")
    for account in configuration.accounts {
      json.beginObject()
      json.field("name", account.account.text)
      json.field("output", account.output)
      json.field("login", account.login)
      json.field("private", account.keepsPrivateData)
      json.field("line", account.line)
      json.endObject()
    }
    json.endArray()
    json.beginObject("hooks")
    json.field("afterSuccess", configuration.hooks.programs[.success]?[0])
    json.field("onFailure", configuration.hooks.programs[.failure]?[0])
    json.field("seconds", Int(configuration.hooks.seconds))
    json.endObject()
  }
}

extension Configuration {
  /// Checks what only the verbs know: whether an option takes its value.
  ///
  /// - Throws: ``Failure`` for the first that does not.
  fileprivate func check() throws {
    for entry in entries {
      let verbs = zip(entry.setting.verbs, entry.setting.sections)
        .filter { entry.section == Self.general || entry.section == $0.1 }.map(\.0)
      for verb in verbs {
        // What stands for an archive or an account is not looked at.
        let words = verb.split(separator: " ").map(String.init)
        let before = Carpack.fault(in: words + ["x"])
        let after = Carpack.fault(in: words + entry.words + ["x"])
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
