package import ATProtocol
internal import Archive
package import IPLD

/// The fields of a manifest (FORMAT 6).
extension Snapshot {
  /// Every field, in the order of JSON.
  mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.derived("carpack", Self.version, isPrinted: false)
    try fields.field("did", &did)
    try fields.optional("handle", &handle, printsNull: true)
    try fields.optional("pds", &pds, printsNull: true)
    try fields.optional("rev", &rev, printsNull: true)
    try fields.field("commit", &commit)
    try fields.optional("prev", &previous, key: "previous", isNull: true, printsNull: true)
    try fields.field("createdAt", &createdAt)
    try fields.field("tool", &tool)
    try fields.field("complete", &isComplete)
    try fields.group("counts", &counts) { counts, fields throws(SnapshotError) in
      try fields.field("records", &counts.records)
      try fields.field("nodes", &counts.nodes)
      try fields.field("blocks", &counts.blocks)
      try fields.optional("recordBlocks", &counts.recordBlocks)
    }
    try fields.group("blobs", &blobs) { blobs, fields throws(SnapshotError) in
      try blobs.fields(&fields)
    }
    try fields.group("car", &car) { car, fields throws(SnapshotError) in
      try car.fields(&fields)
    }
    try fields.group(
      "unreadable", &unreadable, isAbsent: unreadable == UnreadableRecords()
    ) {
      unreadable, fields throws(SnapshotError) in
      try fields.field("records", &unreadable.count, orElse: 0, isOmitted: false)
      try fields.field(
        "partlySearched", &unreadable.partlySearchedCount, orElse: 0, isOmitted: false)
    }
    try fields.group("left", &remains, orElse: Remains()) {
      remains, fields throws(SnapshotError) in
      try remains.fields(&fields)
    }
    try standing.fields(&fields)
    try fields.group("fetched", &fetched, orElse: Fetched()) {
      fetched, fields throws(SnapshotError) in
      try fields.derived("kind", fetched.since == nil ? "full" : "incremental", isStored: false)
      try fields.optional("since", &fetched.since)
      try fields.optional("repoRev", &fetched.repoRev)
      try fields.group("leftOut", &fetched.leftOut, orElse: LeftOut(blocks: 0, bytes: 0)) {
        leftOut, fields throws(SnapshotError) in
        try fields.field("blocks", &leftOut.blocks)
        try fields.field("bytes", &leftOut.bytes)
      }
    }
    try fields.group("host", &self) { snapshot, fields throws(SnapshotError) in
      try fields.field("os", &snapshot.hostSystem, orElse: "", isOmitted: false)
      try fields.field("durationMs", &snapshot.durationMilliseconds, orElse: 0, isOmitted: false)
    }
    try fields.group(
      "identity", &self, isAbsent: didDocument == nil && plcLog == nil, isPrinted: false
    ) { snapshot, fields throws(SnapshotError) in
      try fields.optional("didDocument", &snapshot.didDocument)
      try fields.optional("plcLog", &snapshot.plcLog)
    }
    try fields.optional("private", &privateData, isPrinted: false)
    try fields.optional("context", &context, isPrinted: false)
    try fields.links("extras", &extrasPages)
    try fields.links("missing", &missingPages)
    try fields.field("unvouched", &isUnvouched, orElse: false, isPrinted: false)
  }
}

extension BlobLedger.Counts {
  /// The fields of `blobs`.
  fileprivate mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.field("referenced", &referenced)
    try fields.field("held", &held)
    guard held <= referenced || !fields.isReading else { throw .malformedField("held") }
    try fields.field("heldBytes", &heldBytes)
    try fields.derived("missing", missing)
    try fields.field("extras", &extras)
    try fields.field("extrasBytes", &extrasBytes)
    try fields.optional("listed", &listed)
    try fields.field("listedMissing", &listedMissing, orElse: 0)
    try fields.field("accepted", &accepted, orElse: 0)
    try fields.group("listFault", &listFault, orElse: .unknown) {
      fault, fields throws(SnapshotError) in
      try fault.fields(&fields)
    }
    try fields.optional("new", &new)
    try fields.optional("newBytes", &newBytes)
  }
}

extension ListFault {
  fileprivate static let unknown = ListFault(reason: .noAnswer, status: nil, isTransient: false)

  /// The fields of `listFault`.
  fileprivate mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.field("reason", &reason)
    try fields.derived("why", sentence, isStored: false)
    try fields.optional("status", &status)
    try fields.field("transient", &isTransient, orElse: false, isOmitted: false)
  }
}

extension Snapshot.Remains {
  /// The fields of `left`.
  fileprivate mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.field("records", &records)
    try fields.field("recordsBefore", &recordsBefore)
    try fields.field("references", &references)
    try fields.field("referencesBefore", &referencesBefore)
  }
}

extension Standing {
  /// The fields about what speaks against a snapshot.
  fileprivate mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.words("doubts", &doubts)
    try fields.words("accepted", &accepted)
  }
}

extension Snapshot.CARDescription {
  /// The fields of `car`.
  fileprivate mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.field("header", &header, isPrinted: false)
    try fields.field("bytes", &byteCount)
    try fields.optional("sha256", &sha256, printsNull: true)
    try fields.field("blocks", &sectionCount)
    try fields.group("order", &self, isPrinted: false) { car, fields throws(SnapshotError) in
      try car.orderFields(&fields)
      // What is said of an order does not hold for another.
      fields.dropRest()
    }
  }

  /// The fields of `order`.
  private mutating func orderFields(_ fields: inout ManifestFields) throws(SnapshotError) {
    var kind = base == nil ? "absolute" : "relative"
    try fields.field("kind", &kind)
    switch kind {
    case "absolute": (base, first) = (nil, nil)
    case "relative":
      try fields.optional("base", &base)
      try fields.optional("first", &first)
      guard base != nil, first != nil else { throw .malformedField("base or first") }
    default: throw .unknownOrder(kind)
    }
    try fields.optional("runs", &runs)
    try fields.links("pages", &pages, isDistinct: false)
    guard runs != nil || !pages.isEmpty else { throw .malformedOrder }
    if runs != nil { pages = [] }
  }
}

// MARK: Bytes

extension Snapshot {
  /// Reads a manifest from its block.
  ///
  /// - Throws: ``SnapshotError``.
  package init(_ bytes: Span<UInt8>) throws(SnapshotError) {
    let value: IPLDValue
    do {
      value = try DAGCBORDecoder.decode(bytes)
    } catch {
      throw .notDAGCBOR(error)
    }
    guard ManifestShape.matches(value), let map = value.map, let commit = value["commit"]?.link,
      let version = value["carpack"]?.integer
    else { throw .notAManifest }
    guard version == Self.version else { throw .unknownVersion(version) }
    guard let did = value["did"].flatMap(DID.read) else { throw .malformedField("did") }
    self.init(did: did, commit: commit)
    var fields = ManifestFields(reading: map)
    try self.fields(&fields)
    further = FurtherFields(map: fields.map)
  }

  /// The manifest's bytes.
  ///
  /// - Throws: `DAGCBORError` never, because a manifest holds nothing that DAG-CBOR cannot say.
  package func encode() throws -> [UInt8] {
    var copy = self
    var fields = ManifestFields(writing: further.map)
    try copy.fields(&fields)
    return try DAGCBOREncoder.encode(.map(fields.map))
  }

  /// The manifest as a block.
  func block() throws -> Block {
    let bytes = try encode()
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  /// A CID for what the snapshot is, wherever it lies: equal for manifests that differ only in what
  /// is about the file.
  ///
  /// - Parameter countsBlobs: whether it matters which of its blobs the archive lacks.
  package func content(countsBlobs: Bool = true) throws -> CID {
    var copy = self
    (copy.previous, copy.isUnvouched) = (nil, false)
    (copy.car.runs, copy.car.pages) = ([], [])
    (copy.car.base, copy.car.first) = (nil, nil)
    if !countsBlobs { (copy.missingPages, copy.blobs) = ([], BlobCounts()) }
    return try copy.block().cid
  }
}

extension Snapshot {
  /// The links in fields that are not known here.
  package var furtherLinks: [CID] {
    var links: [CID] = []
    // A stack instead of recursion: a manifest may be nested as deep as its writer liked.
    var open = [IPLDValue.map(further.map)]
    while let value = open.popLast() {
      switch value {
      case .link(let cid): links.append(cid)
      case .array(let items): open += items
      case .map(let map): open += map.entries.map(\.value)
      default: break
      }
    }
    return links
  }
}

// MARK: JSON

extension Snapshot {
  /// The content of `backup-metadata.json`: the same for the same snapshot, whenever it is
  /// extracted.
  package func metadataJSON(head: CID?) -> [UInt8] {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("archiveHead", head.map { "\($0)" })
    writeFields(to: &json)
    json.endObject()
    json.newline()
    return json.takeBytes()
  }

  /// Writes the snapshot's facts as keys and values into an object that has begun.
  package func writeFields(to json: inout JSONWriter) {
    var copy = self
    // JSON is for people: complete is what lacks nothing at all.
    copy.isComplete = isWhole
    ManifestFields.print(to: &json) { fields throws(SnapshotError) in try copy.fields(&fields) }
  }
}

extension Standing {
  /// Writes what speaks against a snapshot, and what of that was accepted, if anything does.
  package func writeFields(to json: inout JSONWriter) {
    var copy = self
    ManifestFields.print(to: &json) { fields throws(SnapshotError) in try copy.fields(&fields) }
  }
}

extension ListFault {
  /// Writes it as an object.
  package func write(to json: inout JSONWriter) {
    var copy = self
    json.beginObject()
    ManifestFields.print(to: &json) { fields throws(SnapshotError) in try copy.fields(&fields) }
    json.endObject()
  }
}
