internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Reports
internal import Restore
internal import SystemPackage
internal import Terminal
internal import XRPC

/// `carpack rehearse`: a restore that stops before anything that cannot be undone.
struct RehearseCommand: Verb {
  static let page = ManualPage("rehearse", PackageResources.rehearse_txt)

  @Option(help: ArgumentHelp("The server to rehearse on.", valueName: "url"))
  var to: String

  @Flag(help: "Make the account there without asking, though it cannot be removed.")
  var yes = false

  @OptionGroup var argument: ArchiveArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var account: NewAccountOptions

  @OptionGroup var keys: OwnerKeys

  @OptionGroup var login: OwnerLogin

  @OptionGroup(title: "Network options", visibility: .hidden)
  var network: NetworkCommandOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    try RestoreCommand.refuseStandardInput(argument.file)
    try argument.read(over: network.options()) { opened in
      let snapshot = try opened.snapshot(choice)
      _ = opened.status
      reporting.common.say(
        "the account stays on \(to), deactivated: no call deletes it, and it keeps its DID, handle and mail address there"
      )
      guard yes || Console.agrees("Make it?") else {
        throw Failure(
          "the account was not made: that was not agreed to", hint: "--yes agrees",
          status: .incomplete)
      }
      var options = try RestoreOptions(
        to: to, login, account, keys, connections: network.connections, agrees: { _ in false })
      options.isRehearsal = true
      var networkOptions = try network.options()
      networkOptions.namedServers.append(to)
      try RestoreRun(argument.file, snapshot: snapshot, reporting: reporting)
        .run(options, networkOptions)
    }
  }
}
