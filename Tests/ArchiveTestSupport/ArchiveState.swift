import ATProtocol
import Archive
import IPLD
import Repository
import Snapshots
import SystemPackage
package import TestSupport
import Testing

/// The states of an archive in the exit status table.
package enum ArchiveState: String, CaseIterable, Sendable {
  /// Nothing is.
  case whole
  /// A referenced blob is missing.
  case incomplete
  /// The CAR came without a record and a tree node.
  case partial
  /// A record's bytes do not hash to its CID.
  case damaged
  /// The footer after its second snapshot is cut off.
  case unvouched
  /// It has private data.
  case `private`
  /// A record key leads out of the folder, and the figures are not those of the repository.
  case hostile

  /// The record that every verb asks for; it exists in every state.
  package static let record = "app.bsky.feed.post/3k1000000"
  /// The image that posts refer to.
  private static let image = SampleFile.png("an image")

  /// Writes `a.car.zst`, an archive in this state.
  package func write(to folder: TemporaryFolder) throws {
    var repository = try TestRepository(posts: 300)
    if self == .hostile { repository.add("../../x", bytes: [0xa0]) }
    try repository.add("app.bsky.feed.post/image", blob: .blob(Self.image))
    var further = self == .incomplete ? [] : [Block(cid: .blob(Self.image), bytes: Self.image)]
    if self == .partial { repository.omitted = try Self.lost(of: repository) }
    var privateData: CID?
    if self == .private {
      let list = try Self.privateData(of: repository)
      further += list
      privateData = list.last?.cid
    }
    let victim = try #require(repository.cid(of: "app.bsky.feed.post/3k1000299"))
    let car = try repository.car()
    let inspection = try RepositoryInspection(car: car)
    let path = try handMadeArchive(
      in: folder, repository, further: further,
      spoilt: self == .damaged ? (victim, Array("spoilt".utf8)) : nil
    ) { snapshot in
      snapshot.blobs.referenced = inspection.blobs.entries.count
      snapshot.blobs.held = self == .incomplete ? 0 : min(1, snapshot.blobs.referenced)
      snapshot.isComplete = inspection.isComplete
      snapshot.privateData = privateData
      snapshot.counts.records = self == .hostile ? 1 : inspection.recordCount
    }
    if self == .unvouched { try Self.appendSnapshot(to: path) }
    let bytes = try folder.read(try #require(path.lastComponent).string)
    try folder.write("a.car.zst", self == .unvouched ? Array(bytes.dropLast(30)) : bytes)
  }

  /// Appends a second snapshot of the same commit.
  private static func appendSnapshot(to path: FilePath) throws {
    let reader = try ArchiveReader(path: path)
    let newest = try ArchivedSnapshot.newest(in: reader)
    var snapshot = newest.snapshot
    (snapshot.previous, snapshot.createdAt) = (newest.cid, "2026-02-02T03:04:05Z")
    let manifest = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: manifest.span)
    var writer = try ArchiveWriter.open(FileStorage.open(path), carHeader: reader.carHeader)
    try writer.append(cid, manifest.span)
    _ = try writer.commit(manifest: cid)
  }

  /// A record, and a tree node that has others below it than the record asked for.
  private static func lost(of repository: TestRepository) throws -> Set<CID> {
    let blocks = try repository.blocks()
    let block = blocks[0]
    let commit = try Commit(block.bytes.span)
    let record = try #require(repository.cid(of: "app.bsky.feed.post/3k1000150"))
    // Nodes stand in the order of their keys, each after those below it.
    let node = try #require(
      blocks.last { MSTNode.isLikely($0.bytes.span) && $0.cid != commit.data })
    return [record, node.cid]
  }

  /// One answer of a server in one piece, and the list of it.
  private static func privateData(of repository: TestRepository) throws -> [Block] {
    let piece = try DAGCBOREncoder.encode(.map(["carpackPrivate": .bytes(Array("{}".utf8))]))
    let block = Block(cid: CID(codec: .dagCBOR, hashing: piece.span), bytes: piece)
    var entry = PrivateData.Entry("app.bsky.actor.getPreferences", at: "2026-01-02T03:04:05Z")
    (entry.answers, entry.byteCount) = ([[block.cid]], 2)
    return [block, try PrivateData(of: DID(repository.did), [entry]).block()]
  }
}
