internal import ATProtocol
internal import ArgumentParser
internal import Backup
internal import SystemPackage
internal import XRPC

/// `carpack fill`: the blobs that are missing, asked for once more.
struct FillCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fill",
    abstract: "Try once more to get the blobs that an archive lacks, or that are damaged in it.",
    discussion: """
      The account's server of today is asked first, then every server where the account was before, as far as the archive's snapshots and the PLC directory's history name them. What comes is compared with its CID and appended, with a new snapshot whose ledger says what is missing still.

      Exit status: 0 nothing is missing any more, 10 something is, and as "carpack backup".
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
    let file = file
    try options.run(outcomes) {
      display.begin(file)
      let backup = AccountBackup(
        network: try Network(networkOptions), options: backupOptions
      ) { display.show($0, of: file) }
      try await BlobFill(backup).run(path) { outcomes.ended($0.text, $1) }
      display.end(file)
    }
  }
}
