internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Restore
internal import Terminal

/// `carpack rehearse`: a restore that stops before anything that cannot be undone.
struct RehearseCommand: ReportingCommand {
  static let page = ManualPage("rehearse", PackageResources.rehearse_txt)

  @Option(help: ArgumentHelp("The server to rehearse on.", valueName: "url"))
  var to: String

  @Flag(help: "Create the account without asking, although it cannot be deleted later.")
  var yes = false

  @OptionGroup var given: RestoreArguments

  @OptionGroup var server: ServerRestoreOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    guard server.all else { return }
    guard !given.login.login, given.choice.at == nil else {
      throw ValidationError("--all rehearses the newest snapshot of each account, without a login")
    }
    let directory = try HTTPURL(given.network.options().plcDirectory)
    guard try !directory.hasSameOrigin(as: HTTPURL(NetworkOptions(userAgent: "").plcDirectory))
    else {
      throw ValidationError(
        "--all needs a directory for rehearsals (--plc URL): in the public one, the signed operations would take effect"
      )
    }
  }

  func run() throws {
    if server.all { return try rehearseAll() }
    try given.read(to: to) { opened, snapshot, networkOptions in
      // Problems of the archive are reported.
      _ = opened.status
      try agree(
        "a rehearsal creates the account on \(to), deactivated, where it stays: no call deletes it, and it keeps its DID, handle and mail address there",
        "Create it?")
      var options = try given.options(to: to, agrees: { _ in false })
      options.isRehearsal = true
      try RestoreDisplay(common).restore(snapshot, in: given.path, options, networkOptions)
    }
  }

  /// Asks before something is created that cannot be removed.
  ///
  /// - Throws: ``Failure`` if not.
  func agree(_ consequence: String, _ question: String) throws {
    common.say(consequence)
    guard yes || Console.agrees(question) else {
      throw Failure(
        "nothing was created: you did not answer with yes",
        hint: "where there is no terminal to answer on, --yes answers it", status: .incomplete)
    }
  }
}
