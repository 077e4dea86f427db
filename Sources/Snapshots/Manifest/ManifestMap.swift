package import Archive
package import IPLD

/// A manifest as a map, so that a copy keeps the fields that are not known here (FORMAT 6).
///
/// Three things in it are about the file it lies in: which manifest comes before it, by which
/// ordinals its CAR is put together, and whether a footer vouched for it.
package struct ManifestMap {
  private(set) var map: IPLDMap

  /// The fields about the file, and those whose links are followed by what they mean.
  private static let knownLinks: Set<String> = [
    "prev", "commit", "car", "private", "extras", "missing",
  ]

  /// Reads the manifest with this CID.
  ///
  /// - Throws: ``SnapshotError`` if it is not there or no manifest; `ArchiveError` if it is
  ///   damaged.
  package init(_ cid: CID, in reader: ArchiveReader) throws {
    try self.init(try ArchivedSnapshot.block(cid, in: reader).bytes)
  }

  /// The manifest of a snapshot in an archive; made from what was found if it has none.
  ///
  /// - Throws: ``SnapshotError`` if it is not there or no manifest; `ArchiveError` if it is
  ///   damaged.
  package init(_ archived: ArchivedSnapshot) throws {
    if let cid = archived.cid {
      try self.init(cid, in: archived.reader)
    } else {
      try self.init(try archived.snapshot.encode())
    }
  }

  private init(_ bytes: [UInt8]) throws(SnapshotError) {
    let value: IPLDValue
    do {
      value = try DAGCBORDecoder.decode(bytes.span)
    } catch {
      throw .notDAGCBOR(error)
    }
    guard let map = value.map, ManifestShape.matches(value) else { throw .notAManifest }
    self.map = map
  }

  /// Names the manifest before it; nil for none.
  mutating func setPrevious(_ previous: CID?) { map["prev"] = previous.map { .link($0) } ?? .null }

  /// Gives the CAR another order.
  mutating func setOrder(_ order: Snapshot.Order, base: Snapshot.OrderBase?) {
    guard var car = map["car"]?.map else { return }
    car["order"] = .map(Snapshot.orderMap(order, base: base))
    map["car"] = .map(car)
  }

  /// Replaces the pages of missing blobs, and says how many of these are accepted as lost.
  mutating func setMissing(_ pages: [CID], acceptedCount: Int) {
    map["missing"] = pages.isEmpty ? nil : .array(pages.map { .link($0) })
    guard var blobs = map["blobs"]?.map else { return }
    blobs["accepted"] = acceptedCount > 0 ? .integer(Int128(acceptedCount)) : nil
    map["blobs"] = .map(blobs)
  }

  /// Names another list of what is the owner's alone; nil for none.
  package mutating func setPrivate(_ list: CID?) { map["private"] = list.map { .link($0) } }

  /// Whether there is a digest of the CAR.
  var isCARDigested: Bool { map["car"]?["sha256"] != nil }

  /// Whether no footer led to the snapshot when it was found.
  package var isUnvouched: Bool {
    get { map["unvouched"] == .boolean(true) }
    set { map["unvouched"] = newValue ? .boolean(true) : nil }
  }

  /// Replaces the fields that are known here; the others stay.
  package mutating func update(with snapshot: Snapshot) throws {
    let bytes = try snapshot.encode()
    guard let new = try DAGCBORDecoder.decode(bytes.span).map else { return }
    for name in ["private", "extras", "missing"] { map[name] = nil }
    if var blobs = map["blobs"]?.map {
      for name in ["accepted", "listFault"] { blobs[name] = nil }
      map["blobs"] = .map(blobs)
    }
    if var identity = map["identity"]?.map {
      for name in ["didDocument", "plcLog"] { identity[name] = nil }
      map["identity"] = identity.entries.isEmpty ? nil : .map(identity)
    }
    for entry in new.entries {
      guard var fields = map[entry.key]?.map, let known = entry.value.map else {
        map[entry.key] = entry.value
        continue
      }
      for field in known.entries { fields[field.key] = field.value }
      map[entry.key] = .map(fields)
    }
  }

  /// What the snapshot is, whatever of its blobs the archive at hand lacks.
  package var contentWithoutLedger: IPLDMap {
    var content = content
    (content["missing"], content["blobs"]) = (nil, nil)
    return content
  }

  /// How many of the blobs that records refer to are held, and how many losses are accepted.
  package var heldCount: (held: Int, accepted: Int) {
    (map["blobs"]?["held"]?.integer ?? 0, map["blobs"]?["accepted"]?.integer ?? 0)
  }

  /// What the snapshot is, wherever it lies: the manifest without what is about the file.
  package var content: IPLDMap {
    var content = map
    content["prev"] = nil
    content["unvouched"] = nil
    if var car = content["car"]?.map {
      car["order"] = nil
      content["car"] = .map(car)
    }
    return content
  }

  /// The block.
  func block() throws -> Block {
    let bytes = try DAGCBOREncoder.encode(.map(map))
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  /// The links in fields that are not followed otherwise, those that are not known here among them.
  package var furtherLinks: [CID] {
    var links: [CID] = []
    // A stack instead of recursion: a manifest may be nested as deep as its writer liked.
    var open = map.entries.filter { !Self.knownLinks.contains($0.key) }.map(\.value)
    if let car = map["car"]?.map {
      open += car.entries.filter { $0.key != "order" }.map(\.value)
    }
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
