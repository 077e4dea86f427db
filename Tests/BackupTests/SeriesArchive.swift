import ATProtocol
import Archive
import Backup
import IPLD
import SystemPackage
import TestSupport
import Testing

/// An archive of many snapshots, put together by hand: each in a generation of its own, with what is new of it.
///
/// Every generation has one index segment, of everything so far.
struct SeriesArchive {
  let folder: TemporaryFolder
  private(set) var bytes: [UInt8] = []
  /// The snapshots in the order in which they were added, and the CARs they are made of.
  private(set) var snapshots: [(cid: CID, snapshot: Snapshot, car: [UInt8])] = []
  /// What each footer says.
  private(set) var generations: [Generation] = []

  private var ordinals: [CID: UInt64] = [:]
  private var keys = KeyList()
  private var frames: [FrameEntry] = []
  private var streamLength: UInt64 = 0
  private var head: Generation.Head?
  private let encoder = FrameEncoder()

  init() throws { folder = try TemporaryFolder() }

  /// Adds a snapshot, and ends its generation unless told otherwise.
  ///
  /// The figures are those of the CAR; `change` may make them others.
  mutating func add(
    _ car: [UInt8], blobs: [[UInt8]] = [], handle: String? = nil,
    at createdAt: String = "2026-01-02T03:04:05Z", commits: Bool = true,
    change: (inout Snapshot) -> Void = { _ in }
  ) throws {
    let inspection = try RepositoryInspector.inspect(car.span)
    let header = Array(car[..<inspection.header.length])
    if bytes.isEmpty {
      RawFrame.append(header.span, to: &bytes)
      streamLength = UInt64(header.count)
    }
    var order = BlockOrder()
    var new: [Block] = []
    var cursor = CARCursor(header: inspection.header, payload: 0..<car.count)
    while let (section, cid) = try cursor.next(in: car.span) {
      order.append(assign(Block(cid: cid, bytes: Array(car[section.bodyRange])), &new))
    }
    for blob in blobs { _ = assign(Block(cid: .blob(blob), bytes: blob), &new) }
    write(new)
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
    snapshot.counts.blocks = inspection.blocks.count
    snapshot.blobs = Snapshot.BlobCounts()
    snapshot.blobs.referenced = inspection.blobs.entries.count
    for entry in inspection.blobs.entries where ordinals[entry.cid] != nil {
      snapshot.blobs.held += 1
    }
    (snapshot.didDocument, snapshot.plcLog) = (nil, nil)
    (snapshot.extrasPages, snapshot.missingPages) = ([], [])
    snapshot.describe(
      car, header: header.count, sectionCount: order.count, order: order.encoded)
    change(&snapshot)
    let body = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: body.span)
    new = []
    let ordinal = assign(Block(cid: cid, bytes: body), &new)
    head = Generation.Head(cid: cid, ordinal: ordinal, frameOffset: UInt64(bytes.count))
    write(new)
    snapshots.append((cid, snapshot, car))
    if commits { try commit() }
  }

  /// Adds blocks that belong to nothing.
  mutating func add(_ blocks: [Block]) {
    var new: [Block] = []
    for block in blocks { _ = assign(block, &new) }
    write(new)
  }

  /// Ends a generation; without a snapshot since the one before, it is a checkpoint.
  mutating func commit() throws {
    let builder = IndexSegmentBuilder(base: 0, keys: keys, frames: frames[...])
    let offset = UInt64(bytes.count)
    var segment: [UInt8] = []
    let checksum = try builder.encode { segment += $0.array }
    bytes += segment
    let generation = Generation(
      number: UInt64(generations.count + 1), footerOffset: UInt64(bytes.count),
      previousFooterOffset: generations.last?.footerOffset,
      committedLength: UInt64(bytes.count + Footer.length(segments: 1)),
      sectionCount: UInt64(keys.count), streamLength: streamLength, head: head,
      segments: [
        Generation.Segment(
          offset: offset, base: 0, sectionCount: UInt32(keys.count),
          frameCount: UInt32(frames.count), checksum: checksum)
      ])
    bytes += try Footer.encode(generation)
    generations.append(generation)
  }

  /// The number of a block, which is a new one if it is not there yet.
  private mutating func assign(_ block: Block, _ new: inout [Block]) -> UInt64 {
    if let ordinal = ordinals[block.cid] { return ordinal }
    let ordinal = UInt64(ordinals.count)
    ordinals[block.cid] = ordinal
    new.append(block)
    return ordinal
  }

  /// Writes sections in packs, large ones alone.
  private mutating func write(_ blocks: [Block]) {
    var content: [UInt8] = []
    var first = UInt64(keys.count)
    for block in blocks {
      let isLarge = block.bytes.count >= ArchiveLimits.largeBody
      if isLarge || content.count + block.bytes.count > ArchiveLimits.packContent - 100 {
        writeFrame(&content, first)
        first = UInt64(keys.count)
      }
      SectionPrefix.append(block.cid.bytes, bodyLength: UInt64(block.bytes.count), to: &content)
      content += block.bytes
      keys.append(SectionKey(block.cid).prefix)
      if isLarge {
        writeFrame(&content, first)
        first = UInt64(keys.count)
      }
    }
    writeFrame(&content, first)
  }

  private mutating func writeFrame(_ content: inout [UInt8], _ first: UInt64) {
    guard !content.isEmpty else { return }
    var stored: [UInt8] = []
    encoder.encode(content.span, level: 1, into: &stored)
    frames.append(
      FrameEntry(
        offset: UInt64(bytes.count), checksum: XXH64.hash(stored.span), firstOrdinal: first,
        storedLength: UInt32(stored.count)))
    streamLength += UInt64(content.count)
    bytes += stored
    content.removeAll()
  }

  /// A reader of the archive, or of these bytes in its place.
  func reader(_ bytes: [UInt8]? = nil) throws -> ArchiveReader {
    try ArchiveReader(path: FilePath(folder.write("series.car.zst", bytes ?? self.bytes)))
  }

  /// The bytes with every footer changed, so that none holds.
  func withoutFooters() -> [UInt8] {
    var damaged = bytes
    for generation in generations { damaged[Int(generation.footerOffset) + 33] ^= 0xff }
    return damaged
  }

  /// The bytes with one changed in the frame of a snapshot's manifest.
  func damaging(manifest index: Int) throws -> [UInt8] {
    try damaging(snapshots[index].cid)
  }

  /// The bytes with one changed in the frame that a section begins in.
  func damaging(_ cid: CID) throws -> [UInt8] {
    let ordinal = try #require(ordinals[cid])
    let frame = try #require(frames.last { $0.firstOrdinal <= ordinal })
    var damaged = bytes
    damaged[Int(frame.offset) + Int(frame.storedLength) / 2] ^= 0xff
    return damaged
  }
}
