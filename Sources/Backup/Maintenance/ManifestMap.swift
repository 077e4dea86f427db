internal import Archive
internal import IPLD

/// A manifest as the map that it is, so that what is copied keeps also those fields that are not known here (FORMAT 6).
///
/// Only two things of a manifest are about the file it lies in, and change when it gets another place: which manifest comes before
/// it, and by which ordinals its CAR is put together.
struct ManifestMap: Equatable {
  private(set) var map: IPLDMap

  /// The fields that are about the file, and those whose links are followed by what they mean.
  private static let knownLinks: Set<String> = ["prev", "commit", "car", "extras", "missing"]

  /// Reads a manifest.
  ///
  /// - Throws: ``SnapshotError`` if it is none.
  init(_ bytes: Span<UInt8>) throws(SnapshotError) {
    let value: IPLDValue
    do {
      value = try DAGCBORDecoder.decode(bytes)
    } catch {
      throw .notDAGCBOR(error)
    }
    guard let map = value.map, ManifestShape.matches(value) else { throw .notAManifest }
    self.map = map
  }

  /// The manifest of a snapshot in an archive.
  ///
  /// - Throws: ``SnapshotError`` if it is not there or none; `ArchiveError` if it is damaged.
  init(_ archived: ArchivedSnapshot) throws {
    guard let cid = archived.cid else { throw SnapshotError.noSnapshot }
    let block = try archived.block(cid)
    try self.init(block.bytes.span)
  }

  /// Names another manifest as the one before; nil for none.
  mutating func setPrevious(_ previous: CID?) { map["prev"] = previous.map { .link($0) } ?? .null }

  /// Gives the CAR another order.
  mutating func setOrder(_ order: Snapshot.Order, base: Snapshot.OrderBase?) {
    guard var car = map["car"]?.map else { return }
    car["order"] = .map(Snapshot.orderMap(order, base: base))
    map["car"] = .map(car)
  }

  /// Takes over everything that is known of a snapshot; what is not known here stays.
  mutating func update(with snapshot: Snapshot) throws {
    let bytes = try snapshot.encode()
    guard let new = try DAGCBORDecoder.decode(bytes.span).map else { return }
    let car = map["car"]?.map
    for entry in new.entries { map[entry.key] = entry.value }
    guard var known = new["car"]?.map else { return }
    for entry in car?.entries ?? [] where known[entry.key] == nil { known[entry.key] = entry.value }
    map["car"] = .map(known)
  }

  /// What the snapshot is, wherever it lies: the manifest without the two things that are about the file.
  var content: IPLDMap {
    var content = map
    content["prev"] = nil
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
  var furtherLinks: [CID] {
    var links: [CID] = []
    // Not recursive: manifests come from anybody.
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
