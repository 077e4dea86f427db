import ATProtocol
import Archive
import ArchiveTestSupport
import IPLD
internal import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing

/// An archive of many snapshots, each in a generation of its own, and whatever their manifests are
/// to say.
///
/// Packing gives archives of today's form only; here blocks and manifests are appended one by one.
struct SeriesArchive {
  let folder: TemporaryFolder
  let path: FilePath
  /// The snapshots in the order in which they were added, and the CARs they are made of.
  private(set) var snapshots: [(cid: CID, snapshot: Snapshot, car: [UInt8])] = []
  /// What each footer says.
  private(set) var generations: [Generation] = []

  private var header: [UInt8] = []
  private var ordinals: [CID: UInt64] = [:]
  /// What the next generation begins with.
  private var waiting: [Block] = []

  init() throws {
    folder = try TemporaryFolder()
    path = FilePath(folder.file("series.car.zst"))
  }

  /// The bytes of the file.
  var bytes: [UInt8] { get throws { try folder.read("series.car.zst") } }

  /// Adds a snapshot, and ends its generation unless told otherwise.
  ///
  /// The figures are those of the CAR; `change` may make them others.
  mutating func add(
    _ car: [UInt8], blobs: [[UInt8]] = [], handle: String? = nil,
    at createdAt: String = "2026-01-02T03:04:05Z", commits: Bool = true,
    change: (inout Snapshot) -> Void = { _ in }
  ) throws {
    let inspection = try RepositoryInspection(car: car)
    let header = Array(car[..<inspection.header.length])
    if self.header.isEmpty { self.header = header }
    var order = BlockOrder()
    var cursor = CARCursor(header: inspection.header, payload: 0..<car.count)
    while let (section, cid) = try cursor.next(in: car.span) {
      order.append(append(Block(cid: cid, bytes: Array(car[section.bodyRange]))))
    }
    for blob in blobs { append(Block(cid: .blob(blob), bytes: blob)) }
    var snapshot = try Snapshot.example()
    snapshot.did = try #require(inspection.commit?.did)
    snapshot.rev = inspection.commit?.rev
    snapshot.commit = inspection.header.roots[0]
    snapshot.handle = try handle.map { text throws in try Handle(text) }
    snapshot.previous = snapshots.last?.cid
    snapshot.createdAt = createdAt
    snapshot.isComplete = inspection.isComplete
    snapshot.counts.records = inspection.recordCount
    snapshot.counts.nodes = inspection.nodeCount
    snapshot.counts.blocks = inspection.distinctBlockCount
    snapshot.blobs = Snapshot.BlobCounts()
    snapshot.blobs.referenced = inspection.blobs.entries.count
    snapshot.blobs.held = inspection.blobs.entries.count { ordinals[$0.cid] != nil }
    snapshot.unreadable = inspection.unreadable
    (snapshot.didDocument, snapshot.plcLog) = (nil, nil)
    (snapshot.extrasPages, snapshot.missingPages) = ([], [])
    snapshot.describe(
      car, header: header.count, sectionCount: order.count, order: order.encoded)
    change(&snapshot)
    let body = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: body.span)
    append(Block(cid: cid, bytes: body))
    snapshots.append((cid, snapshot, car))
    if commits { try commit(manifest: cid) }
  }

  /// Adds blocks that belong to nothing.
  mutating func add(_ blocks: [Block]) {
    for block in blocks { append(block) }
  }

  /// Ends a generation; without a manifest it is a checkpoint.
  mutating func commit(manifest: CID? = nil) throws {
    let storage = try generations.isEmpty ? FileStorage.create(path) : FileStorage.open(path)
    var writer = try ArchiveWriter.open(storage, carHeader: header)
    for block in waiting { try writer.append(block.cid, block.bytes.span) }
    waiting = []
    generations.append(try writer.commit(manifest: manifest))
  }

  /// The number of a block, which is added if it is not there yet.
  @discardableResult
  private mutating func append(_ block: Block) -> UInt64 {
    if let ordinal = ordinals[block.cid] { return ordinal }
    let ordinal = UInt64(ordinals.count)
    ordinals[block.cid] = ordinal
    waiting.append(block)
    return ordinal
  }

  /// A reader of the archive, or of these bytes in its place.
  func reader(_ bytes: [UInt8]? = nil) throws -> ArchiveReader {
    guard let bytes else { return try ArchiveReader(path: path) }
    return try ArchiveReader(path: FilePath(folder.write("other.car.zst", bytes)))
  }

  /// The bytes with every footer changed, so that none holds.
  func withoutFooters() throws -> [UInt8] {
    var damaged = try bytes
    for generation in generations { damaged[Int(generation.footerOffset) + 33] ^= 0xff }
    return damaged
  }

  /// The bytes with one changed in the frame of a snapshot's manifest.
  func damaging(manifest index: Int) throws -> [UInt8] {
    try damaging(snapshots[index].cid)
  }

  /// The bytes with one changed in the frame that a section begins in.
  func damaging(_ cid: CID) throws -> [UInt8] {
    var damaged = try bytes
    let reader = try self.reader()
    let ordinal = try #require(try reader.ordinal(of: cid))
    let file = MappedFile(copying: damaged)
    let place = try file.withBytes { (file) throws in
      let index = try ArchiveIndex(reader.generation, in: file)
      guard let frame = index.row(of: ordinal, in: file)?.entry else {
        throw ArchiveError(.unknownOrdinal(ordinal))
      }
      return Int(frame.offset) + Int(frame.storedLength) / 2
    }
    damaged[place] ^= 0xff
    return damaged
  }
}
