internal import Archive
internal import Copying
internal import Files
internal import Reports
internal import Sealing
internal import SystemPackage
internal import Terminal

/// What can be said of a sealed archive without a key: whether its stored bytes are those that were
/// written, and nothing of what is in it.
enum SealedVerification {
  /// Looks at the frames of a sealed archive, and says what was found.
  ///
  /// - Parameter heals: whether damage is healed from parity first.
  /// - Returns: 11 if something is damaged, 10 if a write was not finished, 0 otherwise.
  static func verify(
    _ name: String, _ store: StoreArguments, _ verb: some ReportingCommand, heals: Bool
  ) throws -> ExitStatus {
    let file = try OpenedArchive.input(name, store).mapped
    let check = try SealedCheck(file)
    let parity =
      check.flaws.isEmpty
      ? nil : try VerifyCommand.parity(of: name) { try LayerParity.assess(file) }
    if heals, parity?.isHealable == true {
      let healed = try ArchiveRepair.healStored(FilePath(name)) {
        Interruption.removeIfInterrupted($0.string)
      }
      Interruption.removeIfInterrupted(nil)
      verb.common.say("\(name): \(Quantity.bytes(healed)) healed from parity")
      return try verify(name, store, verb, heals: false)
    }
    let isTailed = check.tailCount > 0
    let status: ExitStatus =
      !check.flaws.isEmpty ? .damaged : isTailed ? .incomplete : .success
    for flaw in check.flaws.prefix(20) { Console.say(.damaged, "\(name): \(flaw)") }
    if verb.json {
      report.print((name, file.count, check))
      return status
    }
    if isTailed {
      Console.say(
        .unfinished,
        "\(name) ends in \(Quantity.bytes(UInt64(check.tailCount))) of a write that was not finished; \(OpenedArchive.completion)"
      )
    }
    guard !verb.common.quiet || status != .success else { return status }
    let verdict = check.flaws.isEmpty ? "its stored bytes are undamaged" : "damaged"
    Console.print("\(name): sealed; \(verdict)")
    Console.print(
      "  \(Quantity.count(check.pieceCount, "piece")), \(Quantity.bytes(UInt64(file.count))); their content was not checked: no key was given"
    )
    VerifyReport.say(parity, of: name)
    if check.hasFurtherArchive { Console.say("hint: \(OpenedArchive.completionOfAll)") }
    return status
  }

  static let report = Report<(file: String, bytes: Int, check: SealedCheck)>(
    "sealed", "`carpack verify` of a sealed archive, without a key."
  ) {
    ArchiveFields.file { $0.file }
    Field("undamaged", "whether the stored bytes are those that were written") {
      $0.check.flaws.isEmpty
    }
    Field("pieces", "its pieces") { $0.check.pieceCount }
    Field("bytes", "the size of the file") { $0.bytes }
    Field("archiveBytes", "how many bytes of the archive the pieces hold") { $0.check.plainCount }
    Field("unfinishedBytes", "bytes of an unfinished write at the end") {
      $0.check.tailCount
    }
  }
}
