internal import Notifications
internal import Terminal

extension Configuration {
  /// Checks what only the verbs know: whether an option takes its value.
  ///
  /// - Throws: ``Failure`` for the first that does not.
  func check() throws {
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
