internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Live
internal import SystemPackage

/// `carpack fill`: the blobs that are missing, asked for once more.
struct FillCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fill",
    _superCommandName: Carpack.name,
    abstract: "Try once more to get the blobs that an archive lacks, or that are damaged in it.",
    discussion: Help.discussion(
      """
      The account's server of today is asked first, then every server where the account was before, as far as the archive's snapshots and the PLC directory's history name them. Of each missing blob is said what each server answered, and of each that comes from which server. A former server may give blobs to the account's owner only: --login --pds SERVER asks it as the owner.

      What comes is compared with its CID and appended, with a new snapshot whose ledger says what is missing still. If nothing comes and nothing else has changed, nothing is written. Losses that are accepted ("carpack missing --accept") are not asked for. A list of blobs that broke off is asked for again.

      Exit status: 0 nothing is missing any more but what is accepted as lost, 10 something is, 64 an address is given ("carpack pull" it first), 75 the list of blobs may come next time, and as "carpack backup".
      """,
      examples: [
        "carpack fill alice.example.com.car.zst",
        "carpack fill backups/",
        "carpack fill alice.example.com.car.zst --login --pds https://old.example.com",
      ],
      environment: .network))

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var options: BackupOptions

  func run() throws {
    if argument.paths.contains("-") {
      throw Failure(
        "what arrives is added to the archive, so it has to be a file", hint: nil, status: .usage)
    }
    for path in argument.paths {
      try Elsewhere.refuse(
        path, "what arrives is added to a file",
        hint:
          "pull it first, and push it afterwards; \"carpack backup -o\" also asks again for what an archive in a bucket lacks"
      )
    }
    let (files, searched) = try argument.archives.files()
    for file in files { try CARInput.refuse(file) }
    let display = BackupDisplay(options, isSingle: files.count == 1)
    let networkOptions = try options.networkOptions(showing: display)
    let backupOptions = try options.backupOptions()
    display.note(searched.worst)
    try options.run(display) {
      let network = try Network(networkOptions)
      for file in files {
        display.begin(file)
        let backup = AccountBackup(network: network, options: backupOptions) {
          display.show($0, of: file)
        }
        do {
          try await backup.fill(FilePath(file)) { display.ended($0.text, $1) }
        } catch let error where files.count > 1 && !(error is CancellationError) {
          display.ended(file, .failure(error))
        }
        display.end(file)
      }
      for server in display.serversThatWantLogin {
        display.common.say(
          "hint: \(server) may give blobs to the account's owner: carpack fill \(files[0]) --login --pds \(server)"
        )
      }
    }
  }
}
