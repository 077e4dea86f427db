internal import ATProtocol
internal import Files
internal import IPLD
internal import Reports
internal import Repository
internal import Terminal
internal import Verification

/// What `inspect` says of a CAR: the records as the walk comes to them, then everything else.
final class InspectReport {
  private let file: InputFile
  private let car: CARFile
  private let command: InspectCommand
  private let digest = RecordsDigest()
  /// What was found; empty before the CAR has been walked.
  private(set) var inspection: RepositoryInspection
  /// Who signed the commit; nil if that was not checked, or there is no commit.
  private(set) var signed: Result<ProofLevels.Finding?, any Error> = .success(nil)

  init(_ file: InputFile, _ car: CARFile, _ command: InspectCommand) {
    (self.file, self.car, self.command) = (file, car, command)
    inspection = car.found
  }

  /// The commits of the snapshots of the archive whose content the CAR is, the oldest first.
  private(set) var archivedCommits: [CID] = []

  /// Walks the CAR; where records are listed, that is done as they are printed.
  ///
  /// - Throws: what is wrong with the key or the identity that the commit is judged by.
  func walk() throws {
    guard !command.records else { return }
    if command.json {
      inspect { digest.append($0) }
    } else {
      found(RepositoryInspection(of: car))
    }
    _ = try signed.get()
  }

  private func inspect(_ visit: (RepositoryInspection.Record) -> Void) {
    found(RepositoryInspection(of: car, visit: visit))
  }

  private func found(_ inspection: RepositoryInspection) {
    self.inspection = inspection
    // What no repository needs may be an archive's.
    archivedCommits = car.archivedCommits(besides: inspection)
    let signer = command.signer
    signed = Result { try signer.isGiven ? inspection.commit.map(signer.judge) : nil }
  }

  // MARK: Text

  func printText() {
    if command.records {
      var lines = OutputLines()
      inspect { record in
        lines.append(visible: record.key)
        lines.append("  ")
        record.cid.appendText(to: &lines.bytes)
        lines.append(record.number == nil ? "  missing\n" : "\n")
        lines.printIfMany()
      }
      lines.print()
    }
    if command.blobs {
      for blob in inspection.blobs.entries {
        let size = blob.size.map { Quantity.bytes($0) } ?? "size unknown"
        Console.print(
          "\(blob.cid)  \(blob.mimeType ?? "type unknown")  \(size)  \(blob.firstRecord)")
      }
    }
    if !command.records && !command.blobs { printSummary() }
  }

  private func printSummary() {
    let verdict =
      !inspection.isWellFormed
      ? "damaged or malformed"
      : inspection.isWhole ? "complete and well-formed" : "well-formed, but incomplete"
    Console.print("\(file.name): \(verdict)")
    let commit = inspection.commit
    let unreachable = inspection.unreachableBlockCount
    let rest = unreachable > 0 ? ", \(Quantity.grouped(unreachable)) of them not in the tree" : ""
    Console.print(
      [
        ("account", commit?.did.text),
        ("revision", commit.map { $0.rev?.text ?? "none (a commit of version 2 has none)" }),
        ("commit", commit.map { "\(inspection.header.roots[0]), version \($0.version)" }),
        ("signed", commit.map { _ in signature }),
        (
          "CAR",
          "\(Quantity.bytes(file.count)), version \(inspection.carVersion), \(Quantity.count(inspection.sectionCount, "block"))\(rest)"
        ),
      ] + (commit == nil ? [] : contentRows), width: 11)
  }

  /// By whom the commit was signed, if that was requested.
  private var signature: String {
    switch signed {
    case .success(let finding?): finding.why
    case .success(nil), .failure: "not checked: give --key or --identity"
    }
  }

  /// What is in the repository.
  private var contentRows: [(String, String?)] {
    let collections = inspection.recordsByCollection.sorted { $0.key < $1.key }
    let (blobs, nodes) = (inspection.blobs, Quantity.count(inspection.nodeCount, "node"))
    return [
      ("tree", "\(nodes) in \(Quantity.count(inspection.treeDepth, "level"))"),
      (
        "records",
        "\(Quantity.grouped(inspection.recordCount)) in \(Quantity.count(collections.count, "collection"))"
      ),
    ] + collections.map { ("", "\(Quantity.grouped($0.value))  \($0.key)") } + [
      (
        "blobs",
        "\(Quantity.grouped(blobs.entries.count)) referenced, \(Quantity.bytes(blobs.declaredByteCount())) declared"
      )
    ]
  }

  // MARK: JSON

  private static let record = Fields<RepositoryInspection.Record> {
    Field("path", "collection/rkey") { UTF8Text($0.key) }
    Field("cid", "the record") { $0.cid }
    Field("present", "whether its block is in the CAR") { $0.number != nil }
  }

  /// With --records: every record, written as the walk comes to it.
  private static let records = Field<InspectReport>([
    .init("records", .list(of: .object(record.table)), "with --records: every record").optional
  ]) { report, json in
    guard report.command.records else { return }
    json.beginArray("records")
    report.inspect { entry in
      report.digest.append(entry)
      record.write(entry, to: &json)
    }
    json.endArray()
  }

  private static let blobs = Fields<BlobTable.Entry> {
    Field("cid", "the blob") { $0.cid }
    Field("mimeType", "its media type") { $0.mimeType }
    Field("size", "its bytes") { $0.size }
    Field("record", "the first record that refers to it") { $0.firstRecord }
    Field("legacy", "whether only by the old form of a reference") {
      $0.isLegacy && !$0.isTyped
    }
  }

  static let report = Report<InspectReport>(
    "inspect",
    "`carpack inspect`: what is in a CAR. Without a commit that can be read, only the first part."
  ) {
    records
    Field(
      optional: "blobs", "with --blobs: every blob",
      each: { $0.command.blobs ? Array($0.inspection.blobs.entries) : nil }, as: blobs)
    Field("file", "the CAR") { $0.file.name }
    Field("bytes", "its length") { $0.file.count }
    Field("sha256", "its SHA-256") { $0.file.withBytes { "\(SHA256.digest(of: $0))" } }
    content.of(\.inspection)
    commit.optional { $0.inspection.commit }
    tree.optional { $0.inspection.commit == nil ? nil : $0 }
    Field(
      optional: "archivedCommits",
      "if the CAR is the content of an archive: the commits of its snapshots, the oldest first"
    ) { $0.archivedCommits.isEmpty ? nil : $0.archivedCommits }
    Field(
      optional: "signed", "with --key or --identity: whether an accepted key signed the commit"
    ) { report in (try? report.signed.get()).map { $0.isHeld } }
    Field(optional: "why", "with `signed`: why") { try? $0.signed.get()?.why }
  }

  private static let content = Fields<RepositoryInspection> {
    Field("carVersion", "1 or 2") { $0.carVersion }
    Field("roots", "the roots in its header") { $0.header.roots }
    Field("blockCount", "its sections") { $0.sectionCount }
    Field("distinctBlockCount", "its distinct blocks") { $0.distinctBlockCount }
    Field("hashMismatchBlocks", "blocks that do not hash to their CIDs", .cid) {
      $0.mismatchedBlocks.map { "\($0)" }.sorted()
    }
    Field("unverifiableBlockCount", "blocks with a hash function that is not supported") {
      $0.unverifiableBlockCount
    }
    Field("codecs", "blocks of each codec") { inspection in
      Dictionary(
        uniqueKeysWithValues: inspection.codecCounts.map {
          ("0x\(String($0.key.rawValue, radix: 16))", $0.value)
        })
    }
    Field("rootIsFirstBlock", "whether the first root is the first block") {
      $0.rootIsFirstBlock
    }
    Field(optional: "error", "why the CAR is malformed") { $0.carError.map { "\($0)" } }
    Field(optional: "note", "why there is no commit") { $0.commitFlaw.map { "\($0)" } }
    Field(optional: "rootKeys", "the fields of the root, if it is no commit") {
      $0.commitFlaw?.rootFields?.sorted()
    }
  }

  private static let commit = Fields<Commit> {
    Field("did", "the account") { $0.did }
    Field("commitVersion", "the version of the commit") { $0.version }
    Field("rev", "the revision") { $0.rev?.text }
    Field("prev", "the previous commit, if it names one") { $0.prev }
    Field("hasPrevField", "whether the commit has a field `prev`") { $0.hasPrev }
    Field("commitKeys", "its fields") { $0.fields.sorted() }
    Field("data", "the root of the tree") { $0.data }
    Field("sigBytes", "the length of the signature") { $0.signature.count }
  }

  private static let tree = Fields<InspectReport> {
    walked.of(\.inspection)
    Field("recordsSha256", "the SHA-256 over the lines `collection/rkey CID` of all records") {
      "\($0.digest.finish())"
    }
    Field("firstRecord", "the first of these lines") { $0.digest.first }
    Field("lastRecord", "the last of these lines") { $0.digest.last }
    references.of(\.inspection.blobs)
    Field("unreachableBlockCount", "blocks that the tree does not lead to") {
      $0.inspection.unreachableBlockCount
    }
    Field("complete", "whether nothing is missing") { $0.inspection.isComplete }
    Field("wellFormed", "whether all rules of the format are kept") { $0.inspection.isWellFormed }
  }

  private static let walked = Fields<RepositoryInspection> {
    Field("mstNodeCount", "tree nodes") { $0.nodeCount }
    Field("mstRootLayer", "the layer of the root") { $0.rootLayer }
    Field("mstDepth", "levels of the tree") { $0.treeDepth }
    Field("mstMissingNodes", "nodes that are missing", .cid) {
      $0.missingNodes.map { "\($0)" }.sorted()
    }
    Field("mstProblems", "the first of the rules that the tree breaks") {
      $0.treeProblems.map { "\($0)" }
    }
    Field("mstProblemCount", "how many") { $0.treeProblemCount }
    Field("recordCount", "records") { $0.recordCount }
    Field("distinctRecordCids", "distinct records") { $0.distinctRecordCount }
    Field("recordsByCollection", "records of each collection") { $0.recordsByCollection }
    Field("recordsMissingBlockCount", "records whose blocks are missing") {
      $0.missingRecordCount
    }
    Field("recordDecodeErrors", "records that cannot be read, and why") {
      $0.unreadable.count == 0 ? [] : $0.recordWarnings.map { "\($0.record): \($0.why)" }
    }
    Field("recordsUnreadableCount", "how many") { $0.unreadable.count }
    Field("recordsPartlySearchedCount", "of these, those that may refer to unknown blobs") {
      $0.unreadable.partlySearchedCount
    }
    Field("recordReencodeDiffers", "records that are not in canonical form") {
      $0.nonCanonicalRecordCount
    }
    Field("floatsInRecords", "records with floats") { $0.floatRecordCount }
    Field("recordWarningCount", "records that break the data model") { $0.recordWarningCount }
  }

  private static let references = Fields<BlobTable> {
    Field("blobRefCount", "references to blobs") { $0.typedReferenceCount }
    Field("legacyBlobRefCount", "references in the old form") { $0.legacyReferenceCount }
    Field("blobTotalDeclaredBytes", "the sum of the declared sizes") {
      $0.declaredByteCount(where: \.isTyped)
    }
    Field("blobMimeTypes", "references of each media type") { $0.mimeTypeCounts }
    Field("blobCidCount", "distinct blobs") { $0.entries.count(where: \.isTyped) }
    Field("blobCidsSha256", "the SHA-256 over their CIDs, sorted, one a line") {
      $0.digestOfCIDs(where: \.isTyped)
    }
    Field("blobCids", "their CIDs", .cid) { $0.sortedCIDs(where: \.isTyped) }
    Field("legacyBlobCidCount", "distinct blobs in the old form") {
      $0.entries.count(where: \.isLegacy)
    }
    Field("legacyBlobCidsSha256", "the SHA-256 over their CIDs, sorted, one a line") {
      $0.digestOfCIDs(where: \.isLegacy)
    }
    Field("legacyBlobCids", "their CIDs", .cid) { $0.sortedCIDs(where: \.isLegacy) }
  }
}
