internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Copying
internal import Files
internal import IPLD
internal import Remote
internal import Reports
internal import Sealing
internal import Snapshots
internal import SystemPackage
internal import Terminal
internal import Verification

/// `carpack verify`: everything hashed again, walked and accounted for.
struct VerifyCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("verify", PackageResources.verify_txt)
  static let settings = [
    Setting(name: "quick", kind: .flag),
    Setting(name: "cars", kind: .flag),
  ]

  @Flag(help: "Only compare stored bytes with their checksums.")
  var quick = false

  @Flag(help: "Reassemble the CAR of every snapshot and compare its digest.")
  var cars = false

  @Flag(help: "Heal what is damaged from the archive's parity, and verify again.")
  var heal = false

  @Option(
    help: ArgumentHelp(
      "Demand a level of proof of the snapshots that decide the verdict.",
      valueName: "level"))
  var require: ProofLevels.Level?

  @Option(
    help: ArgumentHelp(
      "The head that the archive must have (\"carpack info\" shows it), or a file with a signed head (NAME.head) that it must have had.",
      valueName: "cid|file"), completion: .file(extensions: ["head"]))
  var expect: String?

  @Option(
    help: ArgumentHelp(
      "With --expect FILE: the key that must have signed that file.", valueName: "did:key"))
  var headKey: String?

  @Option(
    help: ArgumentHelp(
      "The key that must have signed, instead of those that the archive names.",
      valueName: "did:key"))
  var key: String?

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if quick, cars { throw ValidationError("--quick does not reassemble CARs: leave out --cars") }
    if headKey != nil, expect == nil {
      throw ValidationError("--head-key is for the signed head that --expect names")
    }
    if quick, heal { throw ValidationError("--quick does not use parity: leave out --heal") }
    if quick, require != nil || key != nil {
      throw ValidationError("--quick does not check signatures: leave out --require and --key")
    }
  }

  func run() throws {
    if let expect, (try? CID(expect)) == nil, !AtomicFile.isTaken(FilePath(expect)) {
      throw Failure("--expect: \"\(expect)\" is neither a CID nor a file", status: .noInput)
    }
    let isOne = argument.archives.isOne
    let (limits, store) = (argument.limits.limits, argument.store)
    try argument.archives.each(opening: { file in
      let opened: OpenedArchive
      do {
        opened = try OpenedArchive(file, limits, store)
      } catch SealedError.noKey {
        return try SealedVerification.verify(file, store, self, heals: heal)
      } catch SealedError.wrongKey where !RemoteArchive.isAddress(file) {
        try MappedFile(FilePath(file)).refuseFurtherArchives()
        throw SealedError.wrongKey
      }
      return try opened.checkingFetched { try verify(opened, isOne: isOne) }
    }).finish(common)
  }

  /// What parity can heal of a damaged archive; nil if it has no parity, or that cannot be
  /// read.
  static func parity(
    of name: String, _ assess: () throws -> ParityHealing.Report?
  ) throws -> ParityHealing.Report? {
    do {
      return try assess()
    } catch let error as ArchiveError {
      Console.say(.note, "\(name): \(error)")
      return nil
    }
  }

  /// Heals an archive, and opens it again.
  private func healed(_ path: FilePath, _ opened: OpenedArchive) throws -> OpenedArchive {
    let limits = argument.limits.limits
    let stored = try ArchiveRepair.healStored(path) { Interruption.removeIfInterrupted($0.string) }
    _ = try ArchiveRepair.putInOrder(path) { Interruption.removeIfInterrupted($0.string) }
    let moved = try ArchiveRepair.align(path, limits: limits) {
      Interruption.removeIfInterrupted($0.string)
    }
    Interruption.removeIfInterrupted(nil)
    let healed = try ParityHealing.heal(FileStorage.openArchive(path), limits: limits)
    WrittenSize.accept(path)
    common.say("\(opened.name): \(Quantity.bytes(stored + moved + healed)) healed from parity")
    return try OpenedArchive(path.string, limits)
  }

  private func verify(
    _ opened: OpenedArchive, isOne: Bool, isHealed: Bool = false
  ) throws -> ExitStatus {
    let key = try key.map { try VerificationKey($0, of: "--key") }
    let verifier = SnapshotVerifier(
      digestsAllCARs: cars, judging: (try Host.unixTime, key),
      observer: ProgressLine.observer(quiet: common.quiet))
    let wanted = try SnapshotVerifier.Scope(
      choice.selector, of: choice.accountOption.account, in: opened.history)
    let report = try verifier.verify(opened.reader, quick ? .quick : .full, wanted)
    Console.endProgress()
    let parity =
      report.verdict == .damaged
      ? try Self.parity(of: opened.name, opened.reader.assessParity) : nil
    if heal, !isHealed, let parity, parity.isHealable, let path = opened.path {
      return try verify(healed(path, opened), isOne: isOne, isHealed: true)
    }
    // What was asked of some snapshots only says nothing of the whole file. Where the file is not
    // ours, or its medium takes no notes, none is left.
    if !quick, case .all = wanted, let path = opened.path {
      VerificationMark(
        time: Host.now, verdict: report.verdict,
        committedLength: opened.reader.generation.committedLength
      ).put(on: path)
    }
    let rendering = VerifyReport(opened: opened, report: report, parity: parity)
    if json { try rendering.printJSON() } else { rendering.printText(common, isOne: isOne) }
    Console.flush()
    return .worst(
      report.status, opened.lossStatus, try expectedHead(opened, report),
      requiredLevel(opened, report))
  }

  private func expectedHead(_ opened: OpenedArchive, _ report: SnapshotVerifier.Report) throws
    -> ExitStatus
  {
    let head = report.archive.generation.head.map { "\($0.cid)" }
    guard let expect, head != expect else { return .success }
    var finding = ProofLevels.Finding(
      false, "\(opened.name): the head is \(head ?? "lost"), not \(expect)")
    if AtomicFile.isTaken(FilePath(expect)) {
      let key = try headKey.map { try VerificationKey($0, of: "--head-key") }
      let generation = opened.reader.generation
      finding = try statement(in: expect)
        .judge(expect, by: key, opened.name, generation, opened.history)
    }
    guard finding.isHeld == true else {
      Console.say(.notGenuine, finding.why)
      return .notGenuine
    }
    common.say(finding.why)
    return .success
  }

  /// A signed statement that an archive had a head.
  private func statement(in file: String) throws -> HeadStatement {
    let input = try InputFile(file)
    guard input.count <= HeadStatement.maximumLength else {
      throw Failure("\(file) is too long to be a signed head", status: .damaged, at: file)
    }
    do {
      return try HeadStatement(input.withBytes { $0.array })
    } catch let error as BackupError {
      throw Failure(error).of(file)
    }
  }

  /// The exit status for a required level of proof that is not reached.
  private func requiredLevel(_ opened: OpenedArchive, _ report: SnapshotVerifier.Report)
    -> ExitStatus
  {
    guard let require else { return .success }
    var status = ExitStatus.success
    for snapshot in report.snapshots where snapshot.isJudged {
      guard let finding = snapshot.levels?[require], finding.isHeld != true else { continue }
      status = require.statusOfLack
      Console.say(
        .error,
        "\(opened.name): snapshot \(snapshot.entry.number) is not \(require.rawValue): \(finding.why)"
      )
    }
    return status
  }
}

extension SnapshotVerifier.Report {
  /// The exit status for the result.
  var status: ExitStatus {
    let status: ExitStatus =
      switch verdict {
      case .intact: .success
      case .incomplete: .incomplete
      case .damaged: .damaged
      }
    return .worst(status, doubts.isEmpty ? .success : .notGenuine)
  }
}

extension ProofLevels.Level: ExpressibleByArgument {
  /// The exit status for a level that is not reached.
  fileprivate var statusOfLack: ExitStatus {
    switch self {
    case .intact, .wellFormed: .damaged
    case .signed, .identityProven, .continuous: .notGenuine
    case .complete: .incomplete
    }
  }
}
