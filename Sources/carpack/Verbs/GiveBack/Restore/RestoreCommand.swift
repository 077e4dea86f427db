internal import ATProtocol
internal import ArgumentParser
internal import Files
internal import HTTP
internal import Reports
internal import Restore
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack restore`: an account from an archive back onto a server.
struct RestoreCommand: ReportingCommand {
  static let page = ManualPage("restore", PackageResources.restore_txt)

  @Option(help: ArgumentHelp("The server to restore to.", valueName: "url"))
  var to: String?

  @Flag(help: "Show what would be done and what is needed; change nothing.")
  var plan = false

  @Flag(
    help:
      "Put the snapshot's records and blobs back into the account on its own server; later ones stay."
  )
  var inPlace = false

  @Flag(help: "With --in-place: delete records that the snapshot does not have.")
  var exact = false

  @Flag(help: "Send the account's own server the blobs that it lacks.")
  var blobsOnly = false

  @Flag(help: "Make a new account from the archive, with its own DID.")
  var asNew = false

  @Flag(
    help: "With --as-new: change references to the account in its own records to the new account.")
  var rewriteReferences = false

  @Option(
    name: .customLong("record"),
    help: ArgumentHelp(
      "Put this record and its blobs back; may be repeated.", valueName: "word"))
  var records: [String] = []

  @Flag(help: "With --record: replace a different record with the same key.")
  var overwrite = false

  @Flag(
    help:
      "With --blobs-only: if the server lacks blobs without knowing it, delete the records that refer to them and write them again, with the same keys, values and CIDs."
  )
  var rewriteRecords = false

  @Option(
    help: ArgumentHelp(
      "The code that the old server sent by mail, for signing the operation.",
      valueName: "code"))
  var mailCode: String?

  @Flag(help: "Do not use the old server, even if it responds.")
  var abandonOld = false

  /// What may be accepted.
  enum Acceptance: String, CaseIterable, ExpressibleByArgument { case missing }

  @Option(
    help: ArgumentHelp("Continue although blobs are missing on the new server.", valueName: "kind"))
  var accept: [Acceptance] = []

  @Flag(help: "Do not read the blobs back from the new server.")
  var skipBlobComparison = false

  @Flag(
    help:
      "Remove the old server's rotation keys from the DID; --plan names them."
  )
  var dropOldKeys = false

  @Flag(help: "At the end, deactivate the account on the old server.")
  var deactivateOld = false

  @Option(
    help: ArgumentHelp(
      "With --deactivate-old: when the old server may delete the account, in RFC 3339.",
      valueName: "time"))
  var deleteOldAfter: String?

  @Option(
    help: ArgumentHelp(
      "Write the operation that would move the identity to this file instead of sending it.",
      valueName: "file"),
    completion: .file())
  var dryRun: String?

  /// A step that needs confirmation.
  enum Step: String, CaseIterable, ExpressibleByArgument {
    case identity, activate
    case deactivateOld = "deactivate-old"
    case deleteOld = "delete-old"
    case rewrite, sign, write
  }

  @Option(
    help: ArgumentHelp(
      "Do a step without asking: identity, activate, deactivate-old, delete-old, rewrite, sign or write. They move the identity; activate the account on the new server; deactivate it on the old one (with --deactivate-old); let the old one delete it (with --delete-old-after); delete records and write them again (with --rewrite-records); make the new server sign, by writing and deleting a record (with --as-new); write and delete records (with --in-place). May be repeated.",
      valueName: "step"))
  var yes: [Step] = []

  @OptionGroup var given: RestoreArguments

  @OptionGroup var server: ServerRestoreOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    guard [blobsOnly, inPlace, to != nil, !records.isEmpty].count(where: { $0 }) == 1 else {
      throw ValidationError("one of --to, --in-place, --blobs-only and --record is needed")
    }
    if to == nil, !given.login.login {
      throw ValidationError("--in-place, --blobs-only and --record go with --login")
    }
    if plan, to == nil, !inPlace { throw ValidationError("--plan goes with --to or --in-place") }
    if server.all, to == nil || asNew || given.login.login || given.choice.at != nil {
      throw ValidationError(
        "--all goes with --to, and restores the newest snapshot of each account")
    }
    if exact, !inPlace { throw ValidationError("--exact goes with --in-place") }
    if rewriteRecords, !blobsOnly || skipBlobComparison {
      throw ValidationError("--rewrite-records goes with --blobs-only, and reads all blobs back")
    }
    if overwrite, records.isEmpty { throw ValidationError("--overwrite goes with --record") }
    if rewriteReferences, !asNew {
      throw ValidationError("--rewrite-references goes with --as-new")
    }
    if asNew, given.login.login {
      throw ValidationError(
        "--as-new does not use the old server: leave out --login")
    }
    if deleteOldAfter != nil, !deactivateOld {
      throw ValidationError("--delete-old-after goes with --deactivate-old")
    }
  }

  func run() throws {
    if server.all, let to { return try restoreAll(to: to) }
    try given.read(to: to, naming: records) { opened, snapshot, networkOptions in
      if opened.status != .success {
        Console.say(
          .warning, "the archive is damaged or incomplete; everything that is restored is checked")
      }
      if !records.isEmpty {
        try restoreRecords(of: snapshot, networkOptions)
      } else if inPlace {
        try restoreInPlace(snapshot, networkOptions)
      } else if plan {
        try showPlan(snapshot, networkOptions)
      } else {
        try RestoreDisplay(common).restore(
          snapshot, in: given.path, options(), networkOptions)
      }
    }
  }

  /// Asks whether a step may be done.
  var agrees: @Sendable (RestoreQuestion) -> Bool {
    { [yes] question in
      let (step, sentence) = question.asked
      return yes.contains(step) || Console.agrees(sentence)
    }
  }

  func options() throws -> RestoreOptions {
    var options = try given.options(to: to, isPlan: plan, agrees: agrees)
    (options.sendsBlobsOnly, options.rewritesRecords) = (blobsOnly, rewriteRecords)
    options.comparesBlobs = !skipBlobComparison
    options.mailCode = mailCode.map { Secret($0) }
    (options.asNew, options.rewritesReferences) = (asNew, rewriteReferences)
    options.abandonsOld = abandonOld
    options.acceptsMissing = accept.contains(.missing)
    options.dropsOldKeys = dropOldKeys
    options.acceptsOlder = given.choice.at != nil
    (options.deactivatesOld, options.deleteOldAfter) = (deactivateOld, deleteOldAfter)
    if let dryRun {
      options.dryRun = { [common] operation in
        let bytes = Array((operation.operation.json(pretty: true) + "\n").utf8)
        try AtomicFile.save(to: FilePath(dryRun), replacing: true) { try $0(bytes.span) }
        common.say("\(dryRun) written; the operation was not sent")
      }
    }
    return options
  }
}
