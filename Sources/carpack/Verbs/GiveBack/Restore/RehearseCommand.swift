internal import ATProtocol
internal import ArgumentParser
internal import Restore
internal import Terminal

/// `carpack rehearse`: a restore that stops before anything that cannot be undone.
struct RehearseCommand: ReportingCommand {
  static let page = ManualPage("rehearse", PackageResources.rehearse_txt)

  @Option(help: ArgumentHelp("The server to rehearse on.", valueName: "url"))
  var to: String

  @Flag(help: "Make the account there without asking, though it cannot be removed.")
  var yes = false

  @OptionGroup var given: RestoreArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    try given.read(to: to) { opened, snapshot, networkOptions in
      // What is wrong with the archive is said.
      _ = opened.status
      common.say(
        "the account stays on \(to), deactivated: no call deletes it, and it keeps its DID, handle and mail address there"
      )
      guard yes || Console.agrees("Make it?") else {
        throw Failure(
          "the account was not made: that was not agreed to", hint: "--yes agrees",
          status: .incomplete)
      }
      var options = try given.options(to: to, agrees: { _ in false })
      options.isRehearsal = true
      try RestoreDisplay(common).restore(snapshot, in: given.archive.file, options, networkOptions)
    }
  }
}
