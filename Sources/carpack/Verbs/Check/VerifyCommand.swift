internal import Archive
internal import ArgumentParser
internal import Backup

/// `carpack verify`: everything hashed again, walked and accounted for.
struct VerifyCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    _superCommandName: Carpack.name,
    abstract: "Verify an archive: every byte, every snapshot, every blob.",
    discussion: Help.discussion(
      """
      Checks that the file is made of frames in their one form, that all checksums hold, that every section hashes to its CID, that the index is what the data makes it; and of every snapshot that the sections of its CAR are there, in their order and length, that the tree keeps its rules and names records that are there, and that every blob referred to is held or noted as missing. The digest of the whole CAR is compared for the newest snapshot of each account and for those that --at chooses; with --cars for all.

      --at looks at one snapshot only (beside the file, which is verified as a whole), --account at those of one account.

      --quick compares stored bytes with their checksums and believes the manifests. It leaves out decompressing, hashing sections and CARs, and walking trees; it finds every damaged byte, but not a file that was made wrong.

      Bytes behind the last footer are an unfinished write, which the next backup or "carpack repair" completes. While another process writes to the archive, what is committed is verified.

      Without --quick, --at and --account, the time and the verdict are noted in the extended attribute \
      user.carpack.verified, where the file system has such. "carpack missing" shows them.

      Exit status: 0 intact, 10 something is missing, a record that cannot be read may refer to blobs that are not known, or a write was not finished, 11 damaged. Damage counts wherever it is. What is missing counts in the newest snapshot of each account, and in the one that --at chooses; what only older snapshots lack is told.
      """,
      examples: [
        "carpack verify alice.example.com.car.zst",
        "carpack verify backups/",
        "carpack verify --quick --json *.car.zst",
      ]))

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var choice: SnapshotOptions

  @Flag(help: "Check stored bytes against their checksums only.")
  var quick = false

  @Flag(help: "Put the CAR of every snapshot together and compare its digest.")
  var cars = false

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if quick, cars { throw ValidationError("--quick puts no CAR together: leave out --cars") }
  }

  func run() throws {
    let isOne = argument.archives.isOne
    try argument.archives.each { try verify($0, isOne: isOne) }.finish(common)
  }

  private func verify(_ opened: OpenedArchive, isOne: Bool) throws -> ExitStatus {
    let verifier = SnapshotVerifier(
      digestsAllCARs: cars, observer: ProgressLine.observer(quiet: common.quiet))
    let wanted = try scope(opened)
    let report = try verifier.verify(opened.reader, quick ? .quick : .full, wanted)
    Console.endProgress()
    // What was asked of some snapshots only says nothing of the whole file. Where the file is not ours, or its
    // medium takes no notes, none is left.
    if !quick, case .all = wanted {
      VerificationMark(
        time: Host.now, verdict: report.verdict,
        committedLength: opened.reader.generation.committedLength
      ).put(on: opened.input.path)
    }
    let rendering = VerifyReport(opened, report)
    if json { try rendering.printJSON() } else { rendering.printText(common, isOne: isOne) }
    Console.flush()
    return switch report.verdict {
    case .intact: .success
    case .incomplete: .incomplete
    case .damaged: .damaged
    }
  }

  private func scope(_ opened: OpenedArchive) throws -> SnapshotVerifier.Scope {
    let selector = try choice.selector
    guard selector != nil || choice.accountOption.account != nil else { return .all }
    let history = try opened.history
    let account = try history.account(choice.accountOption.account)
    if let selector { return .snapshots(try history.select(selector, of: account)) }
    return account.map { .account($0) } ?? .all
  }
}
