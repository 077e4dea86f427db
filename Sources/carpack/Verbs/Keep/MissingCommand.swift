internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import IPLD
internal import Reports
internal import Snapshots
internal import Terminal
internal import Verification

/// `carpack missing`: the ledger of blobs that an archive does not hold.
struct MissingCommand: ReportingCommand {
  static let page = ManualPage("missing", PackageResources.missing_txt)

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var snapshot: SnapshotOptions

  @Option(
    help: ArgumentHelp(
      "Accept a missing blob, or all lost for good; may be repeated.",
      valueName: "cid|all"))
  var accept: [String] = []

  @Option(
    help: ArgumentHelp("Why the losses are accepted; kept in the archive.", valueName: "text"))
  var reason: String?

  @Option(
    help: ArgumentHelp(
      "Take back the acceptance of a blob, or of all; may be repeated.",
      valueName: "cid|all"))
  var reconsider: [String] = []

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    let maximum = BlobLedger.Acceptance.maximumReason
    try require(
      accept.isEmpty || reconsider.isEmpty,
      "--accept and --reconsider exclude each other: use one of them")
    try require(reason == nil || !accept.isEmpty, "--reason goes with --accept")
    try require(
      reason.map { 1...maximum ~= $0.utf8.count } ?? true,
      "--reason takes 1 to \(maximum) bytes of text")
    let isOne = snapshot.at == nil && argument.archives.isOne && argument.paths != ["-"]
    try require(
      try acceptance == nil || isOne,
      "losses are accepted in the newest snapshot of one archive in a file")
  }

  func run() throws {
    if let acceptance = try acceptance { return try apply(acceptance) }
    try argument.archives.each(list).finish(common)
  }

  /// Lists what an archive lacks.
  private func list(_ opened: OpenedArchive) throws -> ExitStatus {
    let mark = opened.path.flatMap { VerificationMark(of: $0) }
    let place = argument.archives.isOne ? "" : "\(opened.name): "
    var (status, acceptedCount, isByIndex) = (ExitStatus.success, 0, false)
    var isLost = false
    for archived in try opened.snapshots(snapshot) {
      let snapshot = archived.snapshot
      if let fault = snapshot.blobs.listFault { show(fault, of: snapshot, in: opened.name) }
      if snapshot.blobs.listFault != nil || snapshot.unreadable.mayHideBlobs || !snapshot.isComplete
      {
        status = .worst(status, .incomplete)
      }
      let missing = try archived.missingNow()
      isByIndex = isByIndex || missing.isByIndex
      let tried = opened.path.flatMap {
        ArchiveMark.tried.time(of: snapshot.did, about: archived.cid, on: $0)
      }
      let schedule = RetrySchedule.daily(now: Host.now, triedAgain: tried)
      for var entry in missing.blobs {
        // A run that got nothing new wrote no snapshot.
        entry.blob.lastTried = schedule.lastTried(entry.blob)
        if entry.damage != nil {
          status = .worst(status, .damaged)
        } else if entry.blob.accepted != nil {
          acceptedCount += 1
        } else {
          status = .worst(status, .incomplete)
          isLost = isLost || entry.blob.reason.isLasting
        }
        show(entry, of: snapshot, in: opened.name, mark)
      }
      if !snapshot.isComplete {
        common.say(
          .incomplete,
          "\(place)tree nodes or records are missing, which may refer to blobs that are not known")
      }
      common.say(snapshot.unreadable)
    }
    if acceptedCount > 0 {
      common.say("\(place)\(Quantity.count(acceptedCount, "loss was", "losses were")) accepted")
    }
    if status == .success {
      common.say(
        "\(place)nothing \(acceptedCount > 0 ? "else " : "")is missing\(isByIndex ? "" : ", and what is stored of the blobs is not damaged")"
      )
    }
    if isByIndex { common.say(place + OpenedArchive.byIndex) }
    if isLost {
      common.say(
        "hint: \"carpack missing --accept CID \(Elsewhere.fileWord(opened.name))\" notes that a blob is lost for good, and backups count as complete again"
      )
    }
    common.say(place + Self.sentence(mark, opened.reader.generation))
    return .worst(opened.status, status)
  }

  /// When the whole archive was last verified.
  private static func sentence(_ mark: VerificationMark?, _ generation: Generation) -> String {
    guard let mark else { return "never verified (\"carpack verify\" checks the whole file)" }
    var text = "last verified \(mark.time): \(mark.verdict)"
    if generation.committedLength > mark.committedLength {
      text += "; \(Quantity.bytes(generation.committedLength - mark.committedLength)) came later"
    }
    return text
  }

  /// Shows that more may be missing than is known.
  private func show(_ fault: ListFault, of snapshot: Snapshot, in file: String) {
    if json { return Self.fault.print((file, snapshot.did, fault)) }
    Console.print(
      named:
        "\(fault.sentence); the blobs that it would name are not known; the next \"carpack backup\" asks again"
    )
  }

  private func show(
    _ found: ArchivedSnapshot.MissingBlob, of snapshot: Snapshot, in file: String,
    _ mark: VerificationMark?
  ) {
    let entry = found.blob
    if json { return Self.blob.print((file, snapshot.did, found, mark)) }
    var text = "\(entry.cid)"
    let facts = [found.mimeType, entry.size.map { Quantity.bytes($0) }].compactMap { $0 }
    if !facts.isEmpty { text += " (\(facts.joined(separator: ", ")))" }
    text += found.record.map { " of \($0)" } ?? ", listed by the server"
    if let damage = found.damage {
      return Console.print(named: "\(text): it is damaged: \(damage)")
    }
    text += ": \(entry.reason.sentence)"
    if let status = entry.status { text += " (HTTP \(status))" }
    if let accepted = entry.accepted {
      text += "; accepted \(accepted.date)\(accepted.reason.map { ": \($0)" } ?? "")"
    }
    if let first = entry.firstTried, let last = entry.lastTried {
      text += first == last ? "; tried \(last)" : "; first tried \(first), last \(last)"
    }
    Console.print(named: text)
  }

  // MARK: JSON

  static let blob = Report<
    (file: String, did: DID, found: ArchivedSnapshot.MissingBlob, mark: VerificationMark?)
  >("missing", "`carpack missing`: a blob that is missing or damaged.") {
    Field("kind", "", .one(of: "blob")) { _ in "blob" }
    ArchiveFields.file { $0.file }
    Field("account", "whose it is") { $0.did }
    BlobFields.missing.of { $0.found.blob }
    Field("damage", "how it is damaged; null if it is missing") { $0.found.damage }
    Field("record", "the first record that refers to it") { $0.found.record }
    Field("type", "its media type, as that record declares it") { $0.found.mimeType }
    Field("archiveVerified", "when the archive was last verified", .time) { $0.mark?.time }
  }

  static let fault = Report<(file: String, did: DID, fault: ListFault)>(
    "missing", "Or why more may be missing than is known."
  ) {
    Field("kind", "", .one(of: "listFault")) { _ in "listFault" }
    ArchiveFields.file { $0.file }
    Field("account", "the account") { $0.did }
    Field("listFault", "why", { $0.fault }, as: BlobFields.listFault)
  }
}
