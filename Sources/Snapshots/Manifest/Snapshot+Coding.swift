internal import ATProtocol
internal import Archive
internal import IPLD

/// The manifest as DAG-CBOR.
extension Snapshot {
  /// The manifest's bytes.
  ///
  /// - Throws: `DAGCBORError` never, for a manifest holds nothing that DAG-CBOR cannot say.
  package func encode() throws -> [UInt8] { try DAGCBOREncoder.encode(.map(map)) }

  private var map: IPLDMap {
    var map: IPLDMap = [
      "carpack": .integer(Int128(Self.version)),
      "did": .string(did.text),
      "commit": .link(commit),
      "prev": previous.map { .link($0) } ?? .null,
      "createdAt": .string(createdAt),
      "tool": .string(tool),
      "car": .map(carMap),
      "counts": .map(counts.map),
      "blobs": .map(blobs.map),
      "complete": .boolean(isComplete),
      "host": .map([
        "os": .string(hostSystem), "durationMs": .integer(Int128(durationMilliseconds)),
      ]),
    ]
    map["handle"] = handle.map { .string($0.text) }
    map["pds"] = pds.map { .string($0) }
    map["rev"] = rev.map { .string($0.text) }
    if let fetched {
      var facts: IPLDMap = [:]
      facts["since"] = fetched.since.map { .string($0.text) }
      facts["repoRev"] = fetched.repoRev.map { .string($0) }
      if let leftOut = fetched.leftOut {
        facts["leftOut"] = ["blocks": leftOut.blocks, "bytes": leftOut.bytes].ipld
      }
      map["fetched"] = .map(facts)
    }
    if didDocument != nil || plcLog != nil {
      var identity: IPLDMap = [:]
      identity["didDocument"] = didDocument.map { .link($0) }
      identity["plcLog"] = plcLog.map { .link($0) }
      map["identity"] = .map(identity)
    }
    map["private"] = privateData.map { .link($0) }
    if !extrasPages.isEmpty { map["extras"] = .array(extrasPages.map { .link($0) }) }
    if !missingPages.isEmpty { map["missing"] = .array(missingPages.map { .link($0) }) }
    if unreadable.count > 0 {
      map["unreadable"] =
        ["records": unreadable.count, "partlySearched": unreadable.partlySearchedCount].ipld
    }
    for (name, doubts) in [("doubts", standing.doubts), ("accepted", standing.accepted)]
    where !doubts.isEmpty {
      map[name] = .array(doubts.map(\.rawValue).sorted().map { .string($0) })
    }
    if isUnvouched { map["unvouched"] = .boolean(true) }
    return map
  }

  private var carMap: IPLDMap {
    let order = Self.orderMap(car.order, base: car.base)
    var map: IPLDMap = [
      "header": .bytes(car.header),
      "bytes": .integer(Int128(car.byteCount)),
      "blocks": .integer(Int128(car.sectionCount)),
      "order": .map(order),
    ]
    map["sha256"] = car.sha256.map { .bytes($0.bytes) }
    return map
  }

  /// The field `order` of a CAR.
  static func orderMap(_ order: Order, base: OrderBase?) -> IPLDMap {
    var map: IPLDMap = ["kind": .string(base == nil ? "absolute" : "relative")]
    if let base {
      map["base"] = .link(base.manifest)
      map["first"] = .integer(Int128(base.first))
    }
    switch order {
    case .inline(let runs): map["runs"] = .bytes(runs)
    case .pages(let pages): map["pages"] = .array(pages.map { .link($0) })
    }
    return map
  }

  /// Reads a manifest from its block.
  ///
  /// Fields that are not known are ignored.
  ///
  /// - Throws: ``SnapshotError``.
  package init(_ bytes: Span<UInt8>) throws(SnapshotError) {
    let value: IPLDValue
    do {
      value = try DAGCBORDecoder.decode(bytes)
    } catch {
      throw .notDAGCBOR(error)
    }
    guard ManifestShape.matches(value), let version = value["carpack"]?.integer else {
      throw .notAManifest
    }
    guard version == Self.version else { throw .unknownVersion(version) }
    let fields = Fields(value)
    do {
      did = try DID(try fields.text("did"))
      handle = try fields.optionalText("handle").map { text in try Handle(text) }
      rev = try fields.optionalText("rev").map { text in try TID(text) }
    } catch let error as SnapshotError {
      throw error
    } catch {
      throw .malformedField("did, handle or rev")
    }
    pds = try fields.optionalText("pds")
    commit = try fields.link("commit")
    previous = value["prev"] == .null ? nil : try fields.optionalLink("prev")
    createdAt = try fields.text("createdAt")
    tool = try fields.text("tool")
    let car = Fields(value["car"] ?? .null)
    let order = Fields(car.value["order"] ?? .null)
    let digest = try car.value["sha256"].map { _ throws(SnapshotError) in
      let bytes = try car.bytes("sha256")
      guard bytes.count == 32 else { throw .malformedField("sha256") }
      return SHA256Digest(bytes.span)
    }
    self.car = CARDescription(
      header: try car.bytes("header"), byteCount: UInt64(try car.count("bytes")),
      sha256: digest, sectionCount: UInt64(try car.count("blocks")),
      order: try Self.order(order), base: try Self.base(order))
    let counts = Fields(value["counts"] ?? .null)
    self.counts = Counts(
      records: try counts.count("records"), nodes: try counts.count("nodes"),
      blocks: try counts.count("blocks"), recordBlocks: try counts.optionalCount("recordBlocks"))
    let blobs = Fields(value["blobs"] ?? .null)
    self.blobs = BlobCounts()
    self.blobs.referenced = try blobs.count("referenced")
    self.blobs.held = try blobs.count("held")
    self.blobs.heldBytes = UInt64(try blobs.count("heldBytes"))
    self.blobs.extras = try blobs.count("extras")
    self.blobs.extrasBytes = UInt64(try blobs.count("extrasBytes"))
    guard self.blobs.held <= self.blobs.referenced else { throw .malformedField("held") }
    self.blobs.listed = try blobs.optionalCount("listed")
    self.blobs.listedMissing = try blobs.optionalCount("listedMissing") ?? 0
    self.blobs.accepted = try blobs.optionalCount("accepted") ?? 0
    self.blobs.listFault = try blobs.value["listFault"].map { _ throws(SnapshotError) in
      try Self.listFault(try blobs.optionalMap("listFault"))
    }
    self.blobs.new = try blobs.optionalCount("new")
    self.blobs.newBytes = try blobs.optionalCount("newBytes").map { UInt64($0) }
    fetched = try value["fetched"].map { _ throws(SnapshotError) in
      try Self.fetched(try fields.optionalMap("fetched"))
    }
    let identity = try fields.optionalMap("identity")
    didDocument = try identity.optionalLink("didDocument")
    plcLog = try identity.optionalLink("plcLog")
    privateData = try fields.optionalLink("private")
    extrasPages = try fields.distinctLinks("extras")
    missingPages = try fields.distinctLinks("missing")
    guard case .boolean(let complete)? = value["complete"] else {
      throw .malformedField("complete")
    }
    isComplete = complete
    let unreadable = try fields.optionalMap("unreadable")
    self.unreadable.count = try unreadable.optionalCount("records") ?? 0
    self.unreadable.partlySearchedCount = try unreadable.optionalCount("partlySearched") ?? 0
    standing.doubts = try fields.doubts("doubts")
    standing.accepted = try fields.doubts("accepted")
    isUnvouched = value["unvouched"] == .boolean(true)
    let host = try fields.optionalMap("host")
    hostSystem = try host.optionalText("os") ?? ""
    durationMilliseconds = try host.optionalCount("durationMs") ?? 0
  }

  private static func fetched(_ fields: Fields) throws(SnapshotError) -> Fetched {
    var fetched = Fetched()
    do {
      fetched.since = try fields.optionalText("since").map { text in try TID(text) }
    } catch {
      throw .malformedField("since")
    }
    fetched.repoRev = try fields.optionalText("repoRev")
    if fields.value["leftOut"] != nil {
      let leftOut = try fields.optionalMap("leftOut")
      fetched.leftOut = LeftOut(
        blocks: try leftOut.count("blocks"), bytes: try leftOut.count("bytes"))
    }
    return fetched
  }

  private static func listFault(_ fields: Fields) throws(SnapshotError) -> ListFault {
    ListFault(
      reason: BlobLedger.Reason(rawValue: try fields.text("reason")),
      status: try fields.optionalCount("status"),
      isTransient: fields.value["transient"] == .boolean(true))
  }

  private static func order(_ fields: Fields) throws(SnapshotError) -> Order {
    if fields.value["runs"] != nil { return .inline(try fields.bytes("runs")) }
    guard fields.value["pages"] != nil else { throw .malformedOrder }
    return .pages(try fields.links("pages"))
  }

  private static func base(_ fields: Fields) throws(SnapshotError) -> OrderBase? {
    let kind = try fields.text("kind")
    switch kind {
    case "absolute": return nil
    case "relative":
      return OrderBase(
        manifest: try fields.link("base"), first: UInt64(try fields.count("first")))
    default: throw .unknownOrder(kind)
    }
  }
}

/// The fields of a map, each with the type it has to have.
private struct Fields {
  let value: IPLDValue

  package init(_ value: IPLDValue) { self.value = value }

  func text(_ name: String) throws(SnapshotError) -> String {
    guard let text = value[name]?.string else { throw .malformedField(name) }
    return text
  }

  /// A text, or nil when the field is absent.
  func optionalText(_ name: String) throws(SnapshotError) -> String? {
    value[name] == nil ? nil : try text(name)
  }

  func link(_ name: String) throws(SnapshotError) -> CID {
    guard let link = value[name]?.link else { throw .malformedField(name) }
    return link
  }

  func bytes(_ name: String) throws(SnapshotError) -> [UInt8] {
    guard let bytes = value[name]?.bytes else { throw .malformedField(name) }
    return bytes
  }

  /// An integer that is not negative.
  func count(_ name: String) throws(SnapshotError) -> Int {
    guard let count = value[name]?.integer, count >= 0 else { throw .malformedField(name) }
    return count
  }

  /// An integer that is not negative, or nil when the field is absent.
  func optionalCount(_ name: String) throws(SnapshotError) -> Int? {
    value[name] == nil ? nil : try count(name)
  }

  /// A link, or nil when the field is absent.
  func optionalLink(_ name: String) throws(SnapshotError) -> CID? {
    value[name] == nil ? nil : try link(name)
  }

  /// A map, empty when the field is absent.
  func optionalMap(_ name: String) throws(SnapshotError) -> Fields {
    guard let field = value[name] else { return Fields(.null) }
    guard field.map != nil else { throw .malformedField(name) }
    return Fields(field)
  }

  /// A list of links of which none comes twice, so that what they lead to is no more than the
  /// archive holds.
  func distinctLinks(_ name: String) throws(SnapshotError) -> [CID] {
    let links = try links(name)
    guard Set(links).count == links.count else { throw .malformedField(name) }
    return links
  }

  /// A list of doubts, empty when the field is absent; those that are not known here are left out.
  func doubts(_ name: String) throws(SnapshotError) -> Set<Standing.Doubt> {
    guard let field = value[name] else { return [] }
    guard let items = field.array else { throw .malformedField(name) }
    return Set(items.compactMap { item in item.string.flatMap(Standing.Doubt.init) })
  }

  /// A list of links, empty when the field is absent.
  func links(_ name: String) throws(SnapshotError) -> [CID] {
    guard let field = value[name] else { return [] }
    guard let items = field.array else { throw .malformedField(name) }
    var links: [CID] = []
    for item in items {
      guard let link = item.link else { throw .malformedField(name) }
      links.append(link)
    }
    return links
  }
}

extension Snapshot.Counts {
  /// The field `counts`.
  fileprivate var map: IPLDMap {
    var numbers = ["records": records, "nodes": nodes, "blocks": blocks]
    numbers["recordBlocks"] = recordBlocks
    return numbers.map
  }
}

extension Snapshot.BlobCounts {
  /// The field `blobs`.
  fileprivate var map: IPLDMap {
    var numbers = [
      "referenced": referenced, "held": held, "heldBytes": Int(heldBytes), "missing": missing,
      "extras": extras, "extrasBytes": Int(extrasBytes),
    ]
    numbers["listed"] = listed
    if listedMissing > 0 { numbers["listedMissing"] = listedMissing }
    if accepted > 0 { numbers["accepted"] = accepted }
    numbers["new"] = new
    numbers["newBytes"] = newBytes.map { Int($0) }
    var map = numbers.map
    map["listFault"] = listFault.map { .map($0.map) }
    return map
  }
}

extension ListFault {
  /// The field `listFault`.
  fileprivate var map: IPLDMap {
    var map: IPLDMap = [
      "reason": .string(reason.rawValue), "transient": .boolean(isTransient),
    ]
    map["status"] = status.map { .integer(Int128($0)) }
    return map
  }
}

extension [String: Int] {
  /// A map of integers.
  fileprivate var map: IPLDMap {
    var map = IPLDMap()
    for (key, number) in self { map[key] = .integer(Int128(number)) }
    return map
  }

  /// The same as a value.
  fileprivate var ipld: IPLDValue { .map(map) }
}
