import ATProtocol
import Archive
import IPLD
import Snapshots
import Synchronization

/// The repositories that were laid out to answer requests, those used last.
struct Repositories {
  private let threads: WorkThreads
  /// By their blocks.
  private let laidOut = Recent<LaidOutRepository>(limit: 4 << 20)
  private let restored = Recent<RestoredRepository>(limit: 4)
  /// By the names of their blobs.
  private let held = Recent<[CID]>(limit: 1 << 18)

  init(on threads: WorkThreads) { self.threads = threads }

  /// A snapshot's repository, laid out.
  func laidOut(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> LaidOutRepository {
    try await value(
      "laid out \(manifest)", manifest, of: snapshot, in: laidOut,
      size: snapshot.snapshot.counts.blocks
    ) { try LaidOutRepository(of: snapshot) }
  }

  /// A snapshot's CAR, assembled.
  func restored(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> RestoredRepository {
    try await value("restored \(manifest)", manifest, of: snapshot, in: restored, size: 1) {
      let car = try RestoredRepository(snapshot, exporting: true)
      car.releasePages()
      snapshot.reader.releasePages()
      return car
    }
  }

  /// The blobs of a snapshot that the archive holds, in the order of their digests.
  func held(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> [CID] {
    let repository = try await laidOut(snapshot, manifest)
    return try await value(
      "held \(manifest)", manifest, of: snapshot, in: held, size: repository.blobs.entries.count
    ) { try repository.heldBlobs() }
  }

  private func value<Value: Sendable>(
    _ key: String, _ manifest: CID, of snapshot: ArchivedSnapshot, in recent: Recent<Value>,
    size: Int, make: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    if let known = recent[manifest] { return known }
    return try await threads.run(key) {
      // Another request may have had it made in the meantime.
      if let known = recent[manifest] { return known }
      let value = try make()
      // Of a file that was cut off meanwhile it would be what seemed to be left.
      try snapshot.reader.checkFetched()
      recent.insert((manifest, snapshot.reader, size, value))
      return value
    }
  }
}

/// Values that were made of snapshots, the last used first.
private final class Recent<Value: Sendable>: Sendable {
  typealias Slot = (manifest: CID, reader: ArchiveReader, size: Int, value: Value)

  private let limit: Int
  private let slots = Mutex<[Slot]>([])

  /// - Parameter limit: how large they may be together; one may be larger.
  init(limit: Int) { self.limit = limit }

  /// What was made of a snapshot; it may read more of the archive, which must not be cut off.
  subscript(manifest: CID) -> Value? {
    slots.withLock { slots in
      slots.removeAll { $0.reader.isCutOff }
      guard let index = slots.firstIndex(where: { $0.manifest == manifest }) else { return nil }
      if index > 0 { slots.insert(slots.remove(at: index), at: 0) }
      return slots[0].value
    }
  }

  func insert(_ slot: Slot) {
    slots.withLock { slots in
      slots.insert(slot, at: 0)
      var held = slots.reduce(0) { $0 + $1.size }
      while held > limit, slots.count > 1 { held -= slots.removeLast().size }
    }
  }
}
