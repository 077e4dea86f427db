internal import ATProtocol
internal import Archive
internal import HTTP
internal import IPLD
internal import Live
internal import Notifications
internal import Reports
internal import Snapshots
internal import Terminal

/// The events of `carpack backup` and `carpack fill` in JSON, an object each.
enum BackupEvents {
  /// An event about an account: what the account was called, and what there is to say.
  typealias OfAccount<Value> = Report<(account: String, value: Value)>

  private static func event<Subject>(
    _ name: String, _ about: String, @FieldList<Subject> _ fields: () -> [Field<Subject>]
  ) -> Report<Subject> {
    let fields = fields()
    return Report("backup", about) {
      Field("event", "", .one(of: name)) { _ in name }
      fields
    }
  }

  private static func ofAccount<Value>(
    _ name: String, _ about: String, @FieldList<Value> _ fields: () -> [Field<Value>]
  ) -> OfAccount<Value> {
    let fields = Fields { fields() }
    return event(name, about) {
      account.of { $0.account }
      fields.of { $0.value }
    }
  }

  private static let account = Field<String>("account", "the account, as it was named") { $0 }

  static let started: Report<String> = event(
    "started",
    "`carpack backup` and `carpack fill`, an event a line. The backup of an account has begun."
  ) { account }

  static let resolved: OfAccount<(did: DID, handle: Handle?, server: String)> = ofAccount(
    "resolved", "The account is identified."
  ) {
    Field("did", "the account") { $0.did }
    Field("handle", "its handle") { $0.handle?.text }
    Field("pds", "its server") { $0.server }
  }

  static let repository: OfAccount<(records: Int, bytes: UInt64, isIncremental: Bool)> = ofAccount(
    "repository", "The repository is fetched and checked."
  ) {
    Field("records", "its records") { $0.records }
    Field("bytes", "bytes received") { $0.bytes }
    Field("incremental", "whether only the changes were fetched") { $0.isIncremental }
  }

  static let blobs: OfAccount<(referenced: Int, listed: Int?, wanted: Int)> = ofAccount(
    "blobs", "The blobs to fetch are known."
  ) {
    Field("referenced", "blobs that records refer to") { $0.referenced }
    Field("listed", "blobs that the server lists") { $0.listed }
    Field("wanted", "blobs to fetch") { $0.wanted }
  }

  static let progress: OfAccount<BackupProgress> = ofAccount(
    "progress", "Progress."
  ) {
    Field("stage", "what", .one(of: BackupProgress.Stage.self)) { $0.stage.rawValue }
    Field("bytes", "bytes so far") { $0.bytes }
    Field(optional: "done", "blobs fetched") { $0.stage == .blobs ? $0.blobsDone : nil }
    Field(optional: "total", "blobs to fetch") { $0.stage == .blobs ? $0.blobsTotal : nil }
    Field(optional: "failed", "blobs that could not be fetched") {
      $0.stage == .blobs ? $0.blobsFailed : nil
    }
  }

  static let missing: OfAccount<(entry: BlobLedger.Missing, answers: [ServerAnswer])> = ofAccount(
    "missing", "A blob could not be fetched."
  ) {
    BlobFields.missing.of { $0.entry }
    Field("answers", "what servers answered", each: { $0.answers }, as: BlobFields.answers)
  }

  static let arrived: OfAccount<(cid: CID, server: String, answers: [ServerAnswer])> = ofAccount(
    "arrived", "A missing blob was fetched (`fill`)."
  ) {
    Field("cid", "the blob") { $0.cid }
    Field("from", "the server") { $0.server }
    Field(
      "answers", "what other servers answered before", each: { $0.answers }, as: BlobFields.answers)
  }

  static let warning: Report<(account: String?, text: String)> = event(
    "warning", "A warning."
  ) {
    Field("account", "the account; null for the network") { $0.account }
    Field("message", "what") { $0.text }
  }

  typealias Pause = (host: String, seconds: Double, why: String)

  static let retry = pause(
    "retry", "A request is repeated.", "afterMs", "after how many milliseconds")
  static let wait = pause(
    "wait", "It waits for a server.", "atMostMs", "the longest wait in milliseconds")

  private static func pause(
    _ name: String, _ about: String, _ duration: String, _ meaning: String
  ) -> Report<Pause> {
    event(name, about) {
      Field("host", "the server") { $0.host }
      Field(duration, meaning) { Int(($0.seconds * 1000).rounded()) }
      Field("why", "why") { $0.why }
    }
  }

  static let skipped: Report<(did: DID, status: String)> = event(
    "skipped", "An account that the server does not serve (`--all`)."
  ) {
    Field("account", "the account") { $0.did }
    Field("status", "what the server calls it") { $0.status }
  }

  static let malformed: Report<String> = event(
    "malformed", "An entry of the server's list that names no account (`--all`)."
  ) {
    Field("entry", "the entry") { $0 }
  }

  static let duplicate: OfAccount<DID> = ofAccount(
    "duplicate", "An account that was named twice."
  ) {
    Field("did", "the account") { $0 }
  }

  static let plan: OfAccount<BackupPlan> = ofAccount(
    "plan", "With --dry-run: what would be fetched."
  ) {
    Field("did", "the account") { $0.did }
    Field("handle", "its handle") { $0.handle?.text }
    Field("pds", "its server") { $0.server }
    ArchiveFields.file { $0.name }
    Field("exists", "whether the archive exists") { $0.exists }
    Field("repository", "what would be fetched of the repository") { "\($0.repository)" }
    Field("heldRev", "the revision in the archive") { $0.heldRevision?.text }
    Field("newestRev", "the server's revision") { $0.newestRevision?.text }
    Field("blobs", "the blobs", { $0.blobs }, as: blobsToFetch)
    Field("appView", "the app view from which context would be requested") { $0.appView }
    Field("warnings", "what is odd") { $0.warnings }
  }

  private static let blobsToFetch = Fields<BackupPlan.Blobs> {
    Field("listed", "blobs that the server lists") { $0.listed }
    Field("wanted", "blobs to fetch") { $0.wanted }
    Field("declaredBytes", "their bytes, as far as declared") { $0.declaredBytes }
    Field("unsized", "of these, of unknown size") { $0.unsized }
  }

  static let finished: OfAccount<BackupReport> = ofAccount("finished", "An account is backed up.") {
    ArchiveFields.file { $0.name }
    Field("outcome", "the result", .one(of: BackupReport.Outcome.self)) {
      $0.outcome.rawValue
    }
    Field("bytesAdded", "by how many bytes the archive grew") { $0.bytesAdded }
    Field("bytes", "its size") { $0.generation.committedLength }
    Field("healed", "whether damaged sections were written again") { $0.isHealed }
    ArchiveFields.damage.of { $0.damage }
    Field("lacksPrivateData", "whether private data was requested and is incomplete") {
      $0.lacksPrivateData
    }
    Field(
      optional: "context", "with --context: the result of asking the app view", { $0.context },
      as: context)
    Field("milliseconds", "how long it took") { $0.milliseconds }
    ArchiveFields.head { $0.generation.head?.cid }
    SnapshotFields.manifest.of { $0.snapshot }
    Field(
      "missing", "blobs that are missing", each: { $0.missing }, as: BlobFields.missing)
    Field("identityChanges", "what changed in the account's identity: handle, server, key") {
      $0.identityChanges
    }
    Field("warnings", "what is odd") { $0.warnings }
  }

  private static let context = Fields<ContextOutcome> {
    Field("people", "people received") { $0.people }
    Field("posts", "posts received") { $0.posts }
    Field("thumbnails", "thumbnails received") { $0.thumbnails }
    Field("thumbnailsMissing", "thumbnails that could not be fetched") { $0.thumbnailsMissing }
    Field("thumbnailsLeftOut", "thumbnails left out because of the size limit") {
      $0.thumbnailsLeftOut
    }
    Field("proofs", "valid proofs received") { $0.proofs }
    Field("unproven", "posts without a valid proof") { $0.unproven }
    Field(
      "proofsLeftOut", "posts whose proofs were not requested because of the limits for a server"
    ) { $0.proofsLeftOut }
    Field("leftOut", "people and posts left out because of the limit") { $0.leftOut }
    Field("failures", "what could not be fetched") { $0.failures }
  }

  static let failed: OfAccount<Failure> = ofAccount("failed", "An account was not backed up.") {
    Field("error", "why") { $0.message }
    Field("exitStatus", "the exit status for it") { $0.status.number }
  }

  static let summary: Report<BackupTally> = event("summary", "All accounts are finished.") {
    Field("complete", "complete") { $0[.complete] }
    Field("upToDate", "up to date") { $0[.upToDate] }
    Field("recent", "skipped as recent") { $0[.recent] }
    Field("incomplete", "incomplete") { $0[.incomplete] }
    Field("recentIncomplete", "incomplete ones among the recent") { $0.recentIncompleteCount }
    Field("planned", "planned") { $0.plannedCount }
    Field("failed", "failed") { $0.failedCount }
    Field("skipped", "skipped") { $0.skippedCount }
    Field("malformed", "entries that name no account") { $0.malformedCount }
    Field("bytesAdded", "bytes added to archives") { $0.bytesAdded }
  }

  static let descriptions = [
    started.description, resolved.description, repository.description, blobs.description,
    progress.description, missing.description, arrived.description, warning.description,
    retry.description, wait.description, skipped.description, malformed.description,
    duplicate.description, plan.description, finished.description, failed.description,
    summary.description,
  ]
}

extension Report {
  /// Prints an event of a backup at once, if results are JSON, and keeps it for a hook.
  func tell(_ subject: Subject) {
    EventRecord.record(self, subject)
    printIfWanted(subject)
  }

  /// Prints an object at once, if results are JSON.
  func printIfWanted(_ subject: Subject) {
    guard Console.isJSON else { return }
    print(subject)
    Console.flush()
  }
}
