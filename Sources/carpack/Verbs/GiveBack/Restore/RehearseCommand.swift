internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Reports
internal import Restore
internal import SystemPackage
internal import Terminal
internal import XRPC

/// `carpack rehearse`: a restore that stops before anything that cannot be undone.
struct RehearseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rehearse",
    _superCommandName: Carpack.name,
    abstract: "Restore an account to a server as far as that can be undone, and compare.",
    usage: "carpack rehearse [<options>] <archive> --to <url>",
    discussion: Help.discussion(
      """
      Makes an account on the server, deactivated, imports the repository, sends the blobs, reads all of it back and compares it with the archive. The identity is not touched: for all others nothing happens.

      The account stays there, deactivated, for no call deletes it: it keeps the DID, the handle and the mail address on that server, and what was sent counts among the day's uploads. "carpack restore" with the same archive and server goes on from there.

      Exit status: 0 all records and blobs came back as they are in the archive, 10 blobs are missing, and as "carpack restore".
      """,
      examples: [
        "carpack rehearse alice.example.com.car.zst --to https://pds.example --login",
        "carpack rehearse alice.example.com.car.zst --to https://pds.example --login --yes --json",
      ],
      environment: .restoring))

  @OptionGroup var argument: ArchiveArgument

  @OptionGroup var choice: SnapshotOptions

  @Option(help: ArgumentHelp("The server to rehearse on.", valueName: "url"))
  var to: String

  @Flag(help: "Make the account there without asking, though it cannot be removed.")
  var yes = false

  @OptionGroup var login: OwnerLogin

  @OptionGroup var account: NewAccountOptions

  @OptionGroup var keys: OwnerKeys

  @OptionGroup var network: NetworkCommandOptions

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
