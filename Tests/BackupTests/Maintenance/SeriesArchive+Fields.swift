import Archive
import IPLD
internal import Snapshots
import SystemPackage
import TestSupport
import Testing

extension SeriesArchive {
  /// A block of a kind that is not known here, which links to another.
  static let leaf = Array("what a later version keeps".utf8)
  /// What a later version may say.
  static var future: IPLDValue {
    .map([
      "list": .link(page.cid), "float": .float(0.25), "absent": .link(.blob([7, 7, 7])),
      "words": .array([.string("a"), .null, .boolean(false)]),
    ])
  }
  /// The block that ``future`` leads to, and that leads to ``leaf``.
  static var page: Block {
    // Cannot fail: it is a list of one link.
    let bytes = (try? DAGCBOREncoder.encode(.array([.link(.blob(leaf))]))) ?? []
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  /// Adds a snapshot like the last one, whose manifest has more fields than are known here; returns
  /// the path.
  func withFurtherFields(at createdAt: String) throws -> FilePath {
    let last = try #require(snapshots.last)
    let manifest = try last.snapshot.encode()
    var map = try #require(try DAGCBORDecoder.decode(manifest.span).map)
    map["future"] = Self.future
    map["prev"] = .link(last.cid)
    map["createdAt"] = .string(createdAt)
    var car = try #require(map["car"]?.map)
    car["more"] = .string("about the CAR")
    map["car"] = .map(car)
    let bytes = try DAGCBOREncoder.encode(.map(map))
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    var writer = try ArchiveWriter.open(FileStorage.open(path), carHeader: reader().carHeader)
    try writer.append(.blob(Self.leaf), Self.leaf.span)
    try writer.append(Self.page.cid, Self.page.bytes.span)
    try writer.append(cid, bytes.span)
    try writer.commit(manifest: cid)
    return path
  }
}
