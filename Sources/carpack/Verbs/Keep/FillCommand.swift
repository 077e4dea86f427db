internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import HTTP
internal import Live
internal import SystemPackage
internal import Terminal

/// `carpack fill`: requests the missing blobs once more.
struct FillCommand: Verb {
  static let page = ManualPage("fill", PackageResources.fill_txt)

  @Argument(
    help: ArgumentHelp(
      "The archives: files, and folders to look for archives in.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var paths: [String]

  @OptionGroup var options: BackupOptions

  @OptionGroup var memory: KeyMemoryOption

  func run() throws {
    if paths.contains("-") {
      throw Failure(
        "what arrives is added to the archive, so it has to be a file", hint: nil, status: .usage)
    }
    for path in paths {
      try Elsewhere.refuse(
        path, "what arrives is added to a file",
        hint:
          "pull it first, and push it afterwards; \"carpack backup -o\" also asks again for what an archive in a bucket lacks"
      )
    }
    let (files, searched) = try NamedArchives(paths: paths, limits: ArchiveLimits()).files()
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
          "hint: \(server) may give blobs to the account's owner: carpack fill \(files[0].shellWord) --login --pds \(server)"
        )
      }
    }
  }
}
