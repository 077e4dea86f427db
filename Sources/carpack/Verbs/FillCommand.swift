internal import ATProtocol
internal import ArgumentParser
internal import Backup
internal import SystemPackage
internal import XRPC

/// `carpack fill`: the blobs that are missing, asked for once more.
struct FillCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fill",
    _superCommandName: Carpack.name,
    abstract: "Try once more to get the blobs that an archive lacks, or that are damaged in it.",
    discussion: """
      The account's server of today is asked first, then every server where the account was before, as far as the archive's snapshots and the PLC directory's history name them. Of each missing blob is said what each server answered, and of each that comes from which server. A former server may give blobs to the account's owner only: --login --pds SERVER asks it as the owner.

      What comes is compared with its CID and appended, with a new snapshot whose ledger says what is missing still. If nothing comes and nothing else has changed, nothing is written. Losses that are accepted ("carpack missing --accept") are not asked for. A list of blobs that broke off is asked for again.

      Exit status: 0 nothing is missing any more but what is accepted as lost, 10 something is, 75 the list of blobs may come next time, and as "carpack backup".
      """)

  @Argument(
    help: ArgumentHelp("The archive.", valueName: "file"), completion: .file(extensions: ["zst"]))
  var file: String

  @OptionGroup var options: BackupOptions

  func run() throws {
    let path = FilePath(file)
    let display = BackupDisplay(options.style, namesAccounts: false)
    let networkOptions = try options.networkOptions(showing: display)
    let backupOptions = try options.backupOptions()
    let outcomes = BackupOutcomes(display, options, isSingle: true)
    let (file, isQuiet) = (file, options.json || options.common.quiet)
    try options.run(outcomes) {
      display.begin(file)
      let backup = AccountBackup(
        network: try Network(networkOptions), options: backupOptions
      ) { display.show($0, of: file) }
      try await BlobFill(backup).run(path) { outcomes.ended($0.text, $1) }
      display.end(file)
      guard !isQuiet else { return }
      for server in display.serversThatWantLogin {
        Console.say(
          "hint: \(server) may give blobs to the account's owner: carpack fill \(file) --login --pds \(server)"
        )
      }
    }
  }
}
