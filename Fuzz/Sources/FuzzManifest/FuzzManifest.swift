import ATProtocol
import Archive
import Foundation
import FuzzSupport
import IPLD
import Snapshots
import SystemPackage
import Verification

/// What manifests lead to, behind frames and checksums that hold: manifests, pages, ledgers,
/// private lists, orders, trees.
///
/// The input is ``LinkedBlocks``; the last of them in DAG-CBOR is the archive's newest manifest.
/// Whatever they say, what `log`, `info`, `status`, `missing` and `verify` do with them ends, in a
/// report or an error that has a sentence.
enum FuzzManifest: Fuzzer {
  private static let path = File.scratch("manifest")
  /// How many snapshots of an archive are examined one by one.
  private static let maximumSnapshots = 8

  static func run(_ bytes: Span<UInt8>) {
    let blocks = LinkedBlocks(bytes).blocks
    guard let head = blocks.last(where: { $0.cid.codec == .dagCBOR }) else { return }
    do {
      try write(blocks, head)
    } catch {
      fatalError("no archive could be written: \(error)")
    }
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    guard let reader = attempt({ try ArchiveReader(path: path) }) else {
      fatalError("the archive does not open")
    }
    guard let history = attempt({ try SnapshotHistory(of: reader) }) else {
      fatalError("an archive has no history")
    }
    for broken in history.breaks { requireLegible("\(broken)", limit: 2000) }
    if let status = attempt({ try ArchiveStatus(of: reader, history: history, path: path) }) {
      for account in status.accounts {
        _ = (account.isSettled, account.snapshot.blobs.unaccepted, account.age(at: nil))
      }
    }
    for entry in history.entries.suffix(maximumSnapshots) { look(at: entry, in: reader) }
    verify(reader)
  }

  /// A manifest comes last, in a frame of its own; the writer refuses any other.
  private static func write(_ blocks: [Block], _ head: Block) throws {
    let header = CARHeader(roots: [blocks[0].cid]).bytes
    var writer = try ArchiveWriter.open(
      try FileStorage.create(path), carHeader: header, options: ArchiveOptions(workers: 1))
    for block in blocks.filter({ $0.cid != head.cid }) + [head] {
      try writer.append(block.cid, block.bytes.span)
    }
    _ = try writer.commit(manifest: head.cid)
  }

  /// What `log`, `info` and `missing` read.
  private static func look(at entry: SnapshotHistory.Entry, in reader: ArchiveReader) {
    let blobs = entry.blobs
    _ = (blobs.missing, blobs.isComplete, blobs.unaccepted, blobs.isSettled)
    guard let archived = attempt({ try ArchivedSnapshot(entry.cid, in: reader) }) else { return }
    let snapshot = archived.snapshot
    if let bytes = attempt({ try snapshot.encode() }) {
      require((try? Snapshot(bytes.span)) == snapshot, "what is written again says something else")
    }
    _ = (snapshot.isWhole, snapshot.isSettled, snapshot.hasEverythingKnown)
    _ = attempt { try archived.order() }
    _ = attempt { try archived.missingNow() }
    _ = attempt { try archived.extras() }
    _ = attempt { try archived.readableLists() }
    _ = attempt { (try archived.didDocument(), try archived.plcLog()) }
    guard let data = attempt({ try archived.privateData() }) ?? nil else { return }
    for data in data.entries {
      for answer in data.answers { _ = attempt { try archived.readPrivate(answer) { _ in } } }
    }
  }

  private static func verify(_ reader: ArchiveReader) {
    for depth in [SnapshotVerifier.Depth.quick, .full] {
      let verifier = SnapshotVerifier(
        digestsAllCARs: true,
        judging: (now: UnixTime(microseconds: 1_700_000_000_000_000), key: nil))
      guard let report = attempt({ try verifier.verify(reader, depth) }) else {
        fatalError("verifying threw")
      }
      require(report.archive.isIntact, "a file of honest frames is not intact")
      _ = (report.verdict, report.doubts)
    }
  }

  /// What comes of it; nil for an error, which has to be a short sentence.
  private static func attempt<Value>(_ work: () throws -> Value) -> Value? {
    do {
      return try work()
    } catch {
      requireLegible("\(error)", limit: 2000)
      return nil
    }
  }
}
