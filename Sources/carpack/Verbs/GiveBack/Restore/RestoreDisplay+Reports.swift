internal import ATProtocol
internal import Failures
internal import Files
internal import IPLD
internal import Reports
internal import Restore
internal import Snapshots
internal import Terminal
internal import XRPC

/// The events of `restore` and `rehearse`, as --json has them.
extension RestoreDisplay {
  private static func event<Subject>(
    _ event: String, _ about: String, @FieldList<Subject> _ fields: () -> [Field<Subject>]
  ) -> Report<Subject> { Report("restore", event: event, about, fields) }

  private static let snapshotFields = Fields<RestoreSource> {
    Field("rev", "its revision") { $0.archived.snapshot.rev?.text }
    Field("createdAt", "when the snapshot was made") { $0.archived.snapshot.createdAt }
    Field("commit", "its commit") { $0.head }
    Field("records", "its records") { $0.recordCount }
    Field("bytes", "the bytes of its CAR") { $0.byteCount }
    Field("blobs", "blobs that records refer to") { $0.blobs.entries.count }
    Field("heldBlobs", "those that the archive holds") { $0.heldBlobCount }
  }

  private static let serverFields = Fields<RestoreServer> {
    Field("url", "the server") { $0.url }
    Field("did", "its DID") { $0.facts.did }
    Field("userDomains", "the domains of its handles") { $0.facts.userDomains }
    Field("inviteRequired", "whether it requires an invite code") { $0.facts.isInviteRequired }
    Field("blobLimit", "the size limit for a blob, in bytes") { $0.facts.blobLimit }
  }

  private static let unrestored = Fields<UnrestoredBlob> {
    Field("cid", "the blob") { $0.cid }
    Field("record", "the first record that refers to it") { $0.record }
    Field(
      "reason", "why, in a word",
      .one(
        of: "not-held", "accepted-as-lost", "damaged", "too-large", "refused", "other-cid",
        "not-served", "other-bytes")
    ) { $0.reason.word }
    Field("why", "why") { $0.reason.sentence }
  }

  static let source = event(
    "source",
    "`carpack restore` and `carpack rehearse`, an event a line. What is to be restored is known."
  ) {
    Field("did", "the account") { (source: RestoreSource) in source.did }
    snapshotFields
  }

  static let server = event("server", "What the new server requires and allows is known.") {
    serverFields
  }

  static let step: Report<(step: RestoreStep, answer: String, wasDone: Bool)> = event(
    "step", "A step is done."
  ) {
    Field("step", "which", .one(of: RestoreStep.self)) { $0.step.rawValue }
    Field("answer", "what was answered") { $0.answer }
    Field("wasDone", "whether it had been done before") { $0.wasDone }
  }

  static let progress: Report<Progress> = event(
    "progress", "Progress, once a second at most."
  ) {
    Field("stage", "what") { $0.stage }
    Field("done", "blobs, or bytes, that are done") { $0.done }
    Field("total", "how many there are; 0 if that is not known") { $0.total }
  }

  static let waiting: Report<(seconds: Double, why: String)> = event(
    "waiting", "It waits because of a limit."
  ) {
    Field("seconds", "how long") { Int($0.seconds.rounded(.up)) }
    Field("why", "what for") { $0.why }
  }

  static let operation: Report<(json: String, changes: [String])> = event(
    "operation", "This operation will be sent if you agree."
  ) {
    Field("operation", "the operation, as JSON") { $0.json }
    Field("changes", "what it changes") { $0.changes }
  }

  static let changes: Report<[String]> = event(
    "changes",
    "With `recovery-key add`: what the operation will change if you agree."
  ) {
    Field("changes", "what it changes") { $0 }
  }

  static let document: Report<(json: String, url: String)> = event(
    "document", "You have to publish this document, for a did:web."
  ) {
    Field("document", "the document, as JSON") { $0.json }
    Field("url", "where") { $0.url }
  }

  static let warning: Report<String> = event("warning", "A warning.") {
    Field("message", "what") { $0 }
  }

  static let record: Report<(path: RecordPath, outcome: RecordRestore.Outcome)> = event(
    "record", "With --record: the result for one record."
  ) {
    Field("path", "collection/rkey") { "\($0.path)" }
    Field("outcome", "what", .one(of: "written", "there", "occupied", "refused")) {
      $0.outcome.said.word
    }
    Field("why", "in words") { $0.outcome.said.sentence }
  }

  static let account: Report<(did: DID, outcome: String, why: String?)> = event(
    "account", "With --all: the result for an account, or, with --plan, the expected result."
  ) {
    Field("did", "the account") { $0.did }
    Field("outcome", "what", .one(of: "done", "planned", "waiting", "elsewhere", "failed")) {
      $0.outcome
    }
    Field("why", "why") { $0.why }
  }

  static let plan: Report<RestorePlan> = event("plan", "With --plan: what would be done.") {
    Field("did", "the account; null for a new one that is not made yet") { $0.did }
    Field("archiveDID", "the account in the archive") { $0.source.did }
    snapshotFields.of(\.source)
    Field("server", "the new server", \.server, as: serverFields)
    Field("oldServer", "the old server") { $0.old?.url }
    Field("oldStanding", "what it says of the account") { $0.old?.standing.sentence }
    Field("handle", "the handle") { $0.handle?.text }
    Field("newHandle", "the handle on the new server, if that is known") { $0.newHandle?.text }
    Field("losesHandle", "whether it differs from the present one") {
      $0.newHandle != nil && $0.newHandle != $0.handle
    }
    Field("uploads", "blobs to send") { $0.upload.count }
    Field("uploadBytes", "their bytes") { $0.upload.bytes }
    Field("unrestoredCount", "blobs that would be missing") { $0.unrestored.count }
    Field("unrestored", "the first of them", each: { $0.unrestored.first }, as: unrestored)
    Field("rotationKeys", "the keys that may change the account") { $0.rotationKeys }
    Field("hasPreferences", "whether the archive has preferences") { $0.hasPreferences }
    Field("oldServersKeys", "the rotation keys that are known to be the old server's") {
      $0.oldServersKeys.map(\.key)
    }
    Field("losses", "what the account would lack") { $0.losses }
    Field("needs", "what you have to supply or correct first") { $0.needs }
    Field("warnings", "what is odd") { $0.warnings }
  }

  static let finished: Report<(all: RestoreReport, failure: Failure?, commands: [String])> = event(
    "finished", "The run has ended, or stopped for your confirmation."
  ) {
    Field("handle", "the handle on the new server") { $0.all.handle?.text }
    Field("newDID", "the new account, with --as-new") { $0.all.newDID }
    Field("oldServer", "the old server") { $0.all.oldServer }
    Field("newServer", "the new server") { $0.all.server?.url }
    Field("steps", "the steps that are done", .one(of: RestoreStep.self)) {
      $0.all.steps.map(\.rawValue)
    }
    Field(
      "recordsEqual", "whether all records came back equal; null if they were not read back"
    ) { $0.all.areRecordsEqual }
    Field(
      "formerSignature",
      "whether what the new server serves is signed with a former key until the next write"
    ) { $0.all.hasFormerSignature }
    Field("sentBlobs", "blobs sent in this run") { $0.all.sentBlobs }
    Field("sentBytes", "their bytes") { $0.all.sentBytes }
    Field("equalBlobs", "blobs that came back equal") { $0.all.equalBlobs }
    Field("unrestoredCount", "blobs that are missing or wrong there") { $0.all.unrestored.count }
    Field("unrestored", "the first of them", each: { $0.all.unrestored.first }, as: unrestored)
    Field(optional: "brokenList", "why the new server's list of missing blobs broke off") {
      $0.all.brokenList.map { "\($0)" }
    }
    Field(
      "stoppedBefore", "the step before which it stopped, which needs your confirmation",
      .one(of: RestoreCommand.Step.self)
    ) { $0.all.stoppedBefore?.asked.step.rawValue }
    Field("losses", "what the account lacks, in words") { $0.all.losses }
    Field("standing", "the state at the end, in words, as servers and directory report it") {
      $0.all.situation?.sentences ?? []
    }
    Field("commands", "the commands that continue, if it stopped; replace the words in capitals") {
      $0.commands
    }
    Field(optional: "error", "what ended it", { $0.failure }, as: Failure.fields)
  }

  static let reports: [ReportDescription] = [
    source.description, server.description, step.description, progress.description,
    waiting.description, changes.description, operation.description, document.description,
    warning.description,
    record.description, account.description, plan.description, inPlace.description,
    finished.description,
  ]
}
