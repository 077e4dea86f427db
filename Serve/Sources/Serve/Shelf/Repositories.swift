import ATProtocol
import Archive
import IPLD
import Snapshots
import Synchronization

/// What has been laid out of snapshots to answer requests, the last used of it.
///
/// A request for what is being laid out waits for it.
final class Repositories: Sendable {
  /// How many blocks may be laid out together; one repository may have more.
  private static let maximumBlocks = 4 << 20
  /// How many names of blobs may be kept together; one repository may have more.
  private static let maximumBlobs = 1 << 18
  /// How many CARs are kept put together.
  private static let maximumCARs = 4

  private struct Slot<Value: Sendable> {
    let manifest: CID
    let size: Int
    let value: Task<Value, any Error>
  }

  /// The last used first.
  private let laidOut = Mutex<[Slot<LaidOutRepository>]>([])
  private let restored = Mutex<[Slot<RestoredRepository>]>([])
  private let held = Mutex<[Slot<[CID]>]>([])

  /// A snapshot's repository, laid out.
  func laidOut(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> LaidOutRepository {
    try await Self.value(
      manifest, size: snapshot.snapshot.counts.blocks, limit: Self.maximumBlocks, in: laidOut
    ) { try LaidOutRepository(of: snapshot) }
  }

  /// A snapshot's CAR, put together.
  func restored(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> RestoredRepository {
    try await Self.value(manifest, size: 1, limit: Self.maximumCARs, in: restored) {
      let car = try RestoredRepository(snapshot, exporting: true)
      car.releasePages()
      snapshot.reader.releasePages()
      return car
    }
  }

  /// The blobs of a snapshot that the archive holds, in the order of their digests.
  func held(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> [CID] {
    let repository = try await laidOut(snapshot, manifest)
    return try await Self.value(
      manifest, size: repository.blobs.entries.count, limit: Self.maximumBlobs, in: held
    ) { try repository.heldBlobs() }
  }

  private static func value<Value: Sendable>(
    _ manifest: CID, size: Int, limit: Int, in slots: borrowing Mutex<[Slot<Value>]>,
    make: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    let task = slots.withLock { slots in
      if let index = slots.firstIndex(where: { $0.manifest == manifest }) {
        let slot = slots[index]
        if index > 0 { slots.insert(slots.remove(at: index), at: 0) }
        return slot.value
      }
      let slot = Slot(manifest: manifest, size: size, value: Task.detached { try make() })
      slots.insert(slot, at: 0)
      var held = slots.reduce(0) { $0 + $1.size }
      while held > limit, slots.count > 1 { held -= slots.removeLast().size }
      return slot.value
    }
    do {
      return try await task.value
    } catch {
      // What could not be read may be readable the next time.
      slots.withLock { $0.removeAll { $0.manifest == manifest } }
      throw error
    }
  }
}
