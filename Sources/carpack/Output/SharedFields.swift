internal import ATProtocol
internal import Archive
internal import IPLD
internal import Live
internal import Reports
internal import Snapshots
internal import Terminal

/// The blobs that a snapshot lacks, as several verbs report them.
enum BlobFields {
  static let acceptance = Fields<BlobLedger.Acceptance>("Accepted loss") {
    Field("date", "when the loss was accepted", .time) { $0.date }
    Field("reason", "why") { $0.reason }
  }

  static let missing = Fields<BlobLedger.Missing> {
    Field("cid", "the blob") { $0.cid }
    Field(
      "reason",
      "why it is missing: `not-provided`, `not-found`, `mismatch` and others (FORMAT 6.3)"
    ) { $0.reason.rawValue }
    Field("why", "the same in words") { $0.reason.sentence }
    Field("status", "the HTTP status of the server's answer") { $0.status }
    Field("size", "its size in bytes, as a record declares it") { $0.size }
    Field("referenced", "whether a record refers to it; otherwise only the server lists it") {
      $0.isReferenced
    }
    Field("firstTried", "when it was first asked for", .time) { $0.firstTried }
    Field("lastTried", "when it was last asked for", .time) { $0.lastTried }
    Field(
      optional: "accepted", "when and why the loss was accepted", { $0.accepted }, as: acceptance)
  }

  static let answers = Fields<ServerAnswer>("Answer") {
    Field("server", "the server") { $0.server }
    Field("reason", "what its answer means") { $0.failure.reason.rawValue }
    Field("why", "the same in words") { $0.sentence }
    Field("status", "the HTTP status") { $0.failure.status }
    Field("wantsLogin", "whether it may give the blob to the logged-in owner") { $0.wantsLogin }
  }

  static let listFault = Fields<ListFault>("List fault") {
    Field("reason", "why the server's list of blobs is not complete") { $0.reason.rawValue }
    Field("why", "the same in words") { $0.sentence }
    Field(optional: "status", "the HTTP status") { $0.status }
    Field("transient", "whether asking again may help") { $0.isTransient }
  }
}

/// A snapshot, as several verbs report it.
enum SnapshotFields {
  private typealias Row = ReportTable.Row

  private static func object(_ rows: Row...) -> JSONKind {
    .object(ReportTable(title: nil, rows: rows))
  }

  private static let doubts = JSONKind.list(
    of: .text(.one(of: "rollback", "fork", "handle", "unsigned", "behind", "future")))

  private static let standingRows = [
    Row(
      "doubts", doubts,
      "doubts about the snapshot when it was made; absent if there were none", isOptional: true),
    Row(
      "accepted", doubts, "the doubts that the user accepted; absent if there were none",
      isOptional: true),
  ]

  /// What speaks against it.
  static let standing = Field<Standing>(standingRows) { $0.writeFields(to: &$1) }

  static let remains = Fields<Snapshot.Remains> {
    Field("records", "records that can be reached and read") { $0.records }
    Field("recordsBefore", "of how many") { $0.recordsBefore }
    Field("references", "blobs that these refer to") { $0.references }
    Field("referencesBefore", "of how many") { $0.referencesBefore }
  }

  /// What the manifest says; `Snapshots` has the table of its fields.
  static let manifest = Field<Snapshot>([
    Row("did", .text(.did), "the account"),
    Row("handle", String?.kind, "its handle, as it was known"),
    Row("pds", String?.kind, "its server"),
    Row("rev", String?.kind, "the revision; null for a commit of version 2"),
    Row("commit", CID.kind, "the signed commit"),
    Row("previous", CID?.kind, "the manifest of the snapshot before it in the file"),
    Row("createdAt", String.kind, "when it was made, RFC 3339"),
    Row("tool", String.kind, "the program that made it"),
    Row("complete", Bool.kind, "whether nothing is missing, and no unknown blob can be"),
    Row(
      "counts",
      object(
        Row("records", .integer, "records"), Row("nodes", .integer, "tree nodes"),
        Row("blocks", .integer, "distinct blocks"),
        Row("recordBlocks", .integer, "distinct blocks that are records", isOptional: true)),
      "how much the repository holds"),
    Row(
      "blobs",
      object(
        Row("referenced", .integer, "blobs that records refer to"),
        Row("held", .integer, "of these, in the archive"),
        Row("heldBytes", .integer, "their bytes"),
        Row("missing", .integer, "of these, not in the archive"),
        Row("extras", .integer, "held blobs that no record refers to"),
        Row("extrasBytes", .integer, "their bytes"),
        Row("listed", .integer, "blobs that the server listed", isOptional: true),
        Row(
          "listedMissing", .integer,
          "listed blobs that no record refers to and that are missing", isOptional: true),
        Row("accepted", .integer, "missing blobs that are accepted as lost", isOptional: true),
        Row(
          "listFault", .object(BlobFields.listFault.table),
          "why the server's list is not complete", isOptional: true),
        Row("new", .integer, "blobs that this snapshot added", isOptional: true),
        Row("newBytes", .integer, "their bytes", isOptional: true)),
      "its blobs, when it was made"),
    Row(
      "car",
      object(
        Row("bytes", .integer, "its length in bytes"),
        Row("sha256", String?.kind, "its SHA-256; null if it was never received as one CAR"),
        Row("blocks", .integer, "its sections")), "the CAR of the repository"),
    Row(
      "unreadable",
      object(
        Row("records", .integer, "records that cannot be read"),
        Row(
          "partlySearched", .integer,
          "of these, those that may refer to blobs that are not known")),
      "records that break the data model", isOptional: true),
    Row(
      "left", .object(remains.table),
      "what was left of the snapshot when it was copied from a damaged archive",
      isOptional: true),
    standingRows[0], standingRows[1],
    Row(
      "fetched",
      object(
        Row(
          "kind", .text(.one(of: "full", "incremental")),
          "whether all of it was fetched, or only the changes"),
        Row("since", String.kind, "the revision before it", isOptional: true),
        Row("repoRev", String.kind, "what the server called its revision", isOptional: true),
        Row(
          "leftOut",
          object(Row("blocks", .integer, "blocks"), Row("bytes", .integer, "their bytes")),
          "blocks besides the repository that were not kept", isOptional: true)),
      "how it was fetched from a server", isOptional: true),
    Row(
      "host",
      object(
        Row("os", String.kind, "the operating system"),
        Row("durationMs", .integer, "how long it took, in milliseconds")), "where it was made"),
  ]) { $0.writeFields(to: &$1) }
}

/// Fields that several verbs have.
enum ArchiveFields {
  /// The archive's name.
  static func file<Subject>(_ value: @escaping @Sendable (Subject) -> String) -> Field<Subject> {
    Field("file", "the archive", value: value)
  }

  /// Its newest manifest.
  static func head<Subject>(_ value: @escaping @Sendable (Subject) -> CID?) -> Field<Subject> {
    Field(
      "archiveHead",
      "the CID of the newest manifest, which commits to everything in the file", value: value)
  }

  /// Snapshots that are lost.
  static func lost<Subject>(
    _ value: @escaping @Sendable (Subject) -> [LostSnapshot]
  ) -> Field<Subject> {
    Field(
      "lostSnapshots",
      "snapshots that an unfinished write had left and that could not be kept, a sentence each"
    ) { subject in
      value(subject).map { "\($0)" }
    }
  }

  /// What is damaged of what was there before.
  static let damage = Fields<StoredDamage> {
    Field("damagedSections", "sections of the archive that are damaged") { $0.sectionCount }
    Field("damagedElsewhere", "whether other parts of it are damaged") { $0.isElsewhere }
  }
}

extension Snapshot.Remains {
  /// "2,592 of 4,224 records left, which refer to 202 of 225 blobs".
  var sentence: String {
    "\(Quantity.grouped(records)) of \(Quantity.count(recordsBefore, "record")) left, which refer to \(Quantity.grouped(references)) of \(Quantity.count(referencesBefore, "blob"))"
  }
}
