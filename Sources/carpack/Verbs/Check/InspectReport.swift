internal import ATProtocol
internal import Files
internal import IPLD
internal import Repository
internal import Verification

/// What `inspect` prints: the records as the walk comes to them, then everything else.
struct InspectReport {
  private let listsRecords: Bool
  private let listsBlobs: Bool
  private let isJSON: Bool
  private var json = JSONWriter.ofResults
  private var hasBegun = false
  private var lines = OutputLines()
  private var digest = RecordsDigest()
  private var cidText: [UInt8] = []

  init(listsRecords: Bool, listsBlobs: Bool, isJSON: Bool) {
    self.listsRecords = listsRecords
    self.listsBlobs = listsBlobs
    self.isJSON = isJSON
  }

  /// Takes a record.
  mutating func visit(_ record: RepositoryInspection.Record) {
    cidText.removeAll(keepingCapacity: true)
    record.cid.appendText(to: &cidText)
    if isJSON { digest.append(record.key, cidText) }
    guard listsRecords else { return }
    guard isJSON else {
      lines.append(visible: record.key)
      lines.append("  ")
      lines.bytes += cidText
      lines.append(record.number == nil ? "  missing\n" : "\n")
      lines.printIfMany()
      return
    }
    begin()
    json.beginObject()
    json.key("path")
    let key = record.key
    json.string(utf8: key.span)
    json.key("cid")
    let text = cidText
    json.string(utf8: text.span)
    json.field("present", record.number != nil)
    json.endObject()
    if json.bytes.count > 1 << 16 { Console.print(&json) }
  }

  private mutating func begin() {
    guard !hasBegun else { return }
    hasBegun = true
    json.begin(.inspect)
    if listsRecords {
      json.beginArray("records")
    }
  }

  /// Prints the rest.
  ///
  /// - Parameter signed: who signed the commit; nil if that was not asked for, or there is none.
  mutating func finish(
    _ inspection: RepositoryInspection, _ signed: ProofLevels.Finding?, _ file: InputFile
  ) {
    if isJSON {
      begin()
      if listsRecords { json.endArray() }
      if listsBlobs { writeBlobs(inspection) }
      writeFields(inspection, file)
      if let signed {
        json.field("signed", signed.isHeld)
        json.field("why", signed.why)
      }
      Console.finish(&json)
    } else {
      lines.print()
      if listsBlobs { printBlobs(inspection) }
      if !listsRecords && !listsBlobs { printSummary(inspection, signed, file) }
    }
  }

  private func printBlobs(_ inspection: RepositoryInspection) {
    for entry in inspection.blobs.entries {
      let size = entry.size.map { Quantity.bytes($0) } ?? "size unknown"
      Console.print(
        "\(entry.cid)  \(entry.mimeType ?? "type unknown")  \(size)  \(entry.firstRecord)")
    }
  }

  private func printSummary(
    _ inspection: RepositoryInspection, _ signed: ProofLevels.Finding?, _ file: InputFile
  ) {
    func row(_ name: String, _ text: String) {
      Console.print("  \(name)\(String(repeating: " ", count: max(1, 11 - name.count)))\(text)")
    }
    let verdict =
      !inspection.isWellFormed
      ? "damaged or malformed"
      : inspection.isComplete && !inspection.unreadable.mayHideBlobs
        ? "complete and well-formed" : "well-formed, but incomplete"
    Console.print("\(file.name): \(verdict)")
    if let commit = inspection.commit {
      row("account", commit.did.text)
      row("revision", commit.rev?.text ?? "none (a commit of version 2 has none)")
      row("commit", "\(inspection.header.roots[0]), version \(commit.version)")
      if let signed { row("signed", signed.why) }
    }
    row(
      "CAR",
      "\(Quantity.bytes(file.count)), version \(inspection.carVersion), \(Quantity.count(inspection.sectionCount, "block"))"
        + (inspection.unreachableBlockCount > 0
          ? ", \(Quantity.grouped(inspection.unreachableBlockCount)) of them not in the tree" : ""))
    guard inspection.commit != nil else { return }
    row(
      "tree",
      "\(Quantity.count(inspection.nodeCount, "node")) in \(Quantity.count(inspection.treeDepth, "level"))"
    )
    row(
      "records",
      "\(Quantity.grouped(inspection.recordCount)) in \(Quantity.count(inspection.recordsByCollection.count, "collection"))"
    )
    for (collection, count) in inspection.recordsByCollection.sorted(by: { $0.key < $1.key }) {
      row("", "\(Quantity.grouped(count))  \(collection)")
    }
    let bytes = Self.declaredBytes(inspection.blobs.entries)
    row(
      "blobs",
      "\(Quantity.grouped(inspection.blobs.entries.count)) referenced, \(Quantity.bytes(bytes)) declared"
    )
  }

  private mutating func writeBlobs(_ inspection: RepositoryInspection) {
    json.beginArray("blobs")
    for entry in inspection.blobs.entries {
      json.beginObject()
      json.field("cid", "\(entry.cid)")
      json.field("mimeType", entry.mimeType)
      json.field("size", entry.size)
      json.field("record", entry.firstRecord)
      json.field("legacy", entry.isLegacy && !entry.isTyped)
      json.endObject()
    }
    json.endArray()
  }

  /// The fields by which a repository can be compared with what it is expected to be.
  private mutating func writeFields(_ inspection: RepositoryInspection, _ file: InputFile) {
    json.field("file", file.name)
    json.field("bytes", file.count)
    json.field("sha256", file.withBytes { "\(SHA256.digest(of: $0))" })
    json.field("carVersion", inspection.carVersion)
    json.field("roots", inspection.header.roots.map { "\($0)" })
    json.field("blockCount", inspection.sectionCount)
    json.field("distinctBlockCount", inspection.distinctBlockCount)
    json.field("hashMismatchBlocks", inspection.mismatchedBlocks.map { "\($0)" }.sorted())
    json.field("unverifiableBlockCount", inspection.unverifiableBlockCount)
    json.beginObject("codecs")
    for (codec, count) in inspection.codecCounts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      json.field("0x\(String(codec.rawValue, radix: 16))", count)
    }
    json.endObject()
    json.field("rootIsFirstBlock", inspection.rootIsFirstBlock)
    if let error = inspection.carError { json.field("error", "\(error)") }
    if let error = inspection.commitError {
      json.field("note", "\(error)")
      if let fields = error.rootFields { json.field("rootKeys", fields.sorted()) }
    }
    if let commit = inspection.commit {
      writeCommit(commit)
      writeTree(inspection)
      writeRecords(inspection)
      writeBlobFields(inspection.blobs)
      json.field("unreachableBlockCount", inspection.unreachableBlockCount)
      json.field("complete", inspection.isComplete)
      json.field("wellFormed", inspection.isWellFormed)
    }
  }

  private mutating func writeCommit(_ commit: Commit) {
    json.field("did", commit.did.text)
    json.field("commitVersion", commit.version)
    json.field("rev", commit.rev?.text)
    json.field("prev", commit.prev.map { "\($0)" })
    json.field("hasPrevField", commit.hasPrev)
    json.field("commitKeys", commit.fields.sorted())
    json.field("data", "\(commit.data)")
    json.field("sigBytes", commit.signature.count)
  }

  private mutating func writeTree(_ inspection: RepositoryInspection) {
    json.field("mstNodeCount", inspection.nodeCount)
    json.field("mstRootLayer", inspection.rootLayer)
    json.field("mstDepth", inspection.treeDepth)
    json.field("mstMissingNodes", inspection.missingNodes.map { "\($0)" }.sorted())
    json.field("mstProblems", inspection.treeProblems.map { "\($0)" })
    json.field("mstProblemCount", inspection.treeProblemCount)
  }

  private mutating func writeRecords(_ inspection: RepositoryInspection) {
    json.field("recordCount", inspection.recordCount)
    json.field("distinctRecordCids", inspection.distinctRecordCount)
    json.beginObject("recordsByCollection")
    for (collection, count) in inspection.recordsByCollection.sorted(by: { $0.key < $1.key }) {
      json.field(collection, count)
    }
    json.endObject()
    json.field("recordsMissingBlockCount", inspection.missingRecordCount)
    json.field(
      "recordDecodeErrors",
      inspection.unreadable.count == 0
        ? [] : inspection.recordWarnings.map { "\($0.record): \($0.why)" })
    json.field("recordsUnreadableCount", inspection.unreadable.count)
    json.field("recordsPartlySearchedCount", inspection.unreadable.partlySearchedCount)
    json.field("recordReencodeDiffers", inspection.nonCanonicalRecordCount)
    json.field("floatsInRecords", inspection.floatRecordCount)
    json.field("recordWarningCount", inspection.recordWarningCount)
    json.field("recordsSha256", "\(digest.finish())")
    json.field("firstRecord", digest.first)
    json.field("lastRecord", digest.last)
  }

  /// The sum of the declared sizes, or the greatest number there is: records may say anything.
  private static func declaredBytes(_ entries: some Sequence<BlobTable.Entry>) -> Int {
    entries.reduce(0) { total, entry in
      let (sum, overflow) = total.addingReportingOverflow(entry.size ?? 0)
      return overflow ? .max : sum
    }
  }

  private mutating func writeBlobFields(_ blobs: BlobTable) {
    let typed = blobs.entries.lazy.filter(\.isTyped)
    let legacy = blobs.entries.lazy.filter(\.isLegacy)
    json.field("blobRefCount", blobs.typedReferenceCount)
    json.field("legacyBlobRefCount", blobs.legacyReferenceCount)
    json.field("blobTotalDeclaredBytes", Self.declaredBytes(typed))
    json.beginObject("blobMimeTypes")
    for (type, count) in blobs.mimeTypeCounts.sorted(by: { $0.key < $1.key }) {
      json.field(type, count)
    }
    json.endObject()
    for (prefix, entries) in [("blob", typed), ("legacyBlob", legacy)] {
      let cids = entries.map { "\($0.cid)" }.sorted()
      json.field("\(prefix)CidCount", cids.count)
      var hash = SHA256()
      for cid in cids { hash.update(Array("\(cid)\n".utf8).span) }
      json.field("\(prefix)CidsSha256", "\(hash.finish())")
      json.field("\(prefix)Cids", cids)
    }
  }
}

/// The SHA-256 over the lines `collection/rkey CID`, which come sorted from the walk.
private struct RecordsDigest {
  private var hasher = DigestBox()
  private(set) var first: String?
  private var lastLine: [UInt8] = []

  var last: String? {
    lastLine.isEmpty ? nil : String(decoding: lastLine.dropLast(), as: UTF8.self)
  }

  mutating func append(_ key: [UInt8], _ cidText: [UInt8]) {
    lastLine.removeAll(keepingCapacity: true)
    lastLine += key
    lastLine.append(UInt8(ascii: " "))
    lastLine += cidText
    lastLine.append(UInt8(ascii: "\n"))
    if first == nil { first = last }
    hasher.update(lastLine.span)
  }

  func finish() -> SHA256Digest { hasher.finish() }

  /// A hash that can be part of a value that is copied.
  private final class DigestBox {
    private var hash = SHA256()
    func update(_ bytes: Span<UInt8>) { hash.update(bytes) }
    func finish() -> SHA256Digest { hash.finish() }
  }
}
