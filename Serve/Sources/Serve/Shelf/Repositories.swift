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
    /// Who waits for it, or did.
    let askers: Askers
    let value: Task<Value, any Error>
  }

  private let work: WorkThreads

  /// The last used first.
  private let laidOut = Mutex<[Slot<LaidOutRepository>]>([])
  private let restored = Mutex<[Slot<RestoredRepository>]>([])
  private let held = Mutex<[Slot<[CID]>]>([])

  /// - Parameter work: the threads that lay out.
  init(on work: WorkThreads) { self.work = work }

  /// A snapshot's repository, laid out.
  func laidOut(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> LaidOutRepository {
    try await value(
      manifest, size: snapshot.snapshot.counts.blocks, limit: Self.maximumBlocks, in: laidOut
    ) { try LaidOutRepository(of: snapshot) }
  }

  /// A snapshot's CAR, put together.
  func restored(_ snapshot: ArchivedSnapshot, _ manifest: CID) async throws -> RestoredRepository {
    try await value(manifest, size: 1, limit: Self.maximumCARs, in: restored) {
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
      manifest, size: repository.blobs.entries.count, limit: Self.maximumBlobs, in: held
    ) { try repository.heldBlobs() }
  }

  private func value<Value: Sendable>(
    _ manifest: CID, size: Int, limit: Int, in slots: borrowing Mutex<[Slot<Value>]>,
    make: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    let slot = slots.withLock { slots in
      if let index = slots.firstIndex(where: { $0.manifest == manifest }) {
        let slot = slots[index]
        slot.askers.add(Asker.current)
        if index > 0 { slots.insert(slots.remove(at: index), at: 0) }
        return slot
      }
      let (work, askers) = (work, Askers())
      askers.add(Asker.current)
      let slot = Slot(
        manifest: manifest, size: size, askers: askers,
        // The task only waits; what is made is made on another thread.
        value: Task.detached {
          try await work.run(isWanted: { askers.arePresent }) {
            askers.begin()
            return try make()
          }
        })
      slots.insert(slot, at: 0)
      var held = slots.reduce(0) { $0 + $1.size }
      while held > limit, slots.count > 1 { held -= slots.removeLast().size }
      return slot
    }
    do {
      return try await slot.value.value
    } catch {
      // What could not be read may be readable the next time.
      slots.withLock { $0.removeAll { $0.askers === slot.askers } }
      // It came as the last of the others had gone.
      if error is WorkThreads.Abandoned, Asker.current?.isPresent ?? true {
        return try await value(manifest, size: size, limit: limit, in: slots, make: make)
      }
      throw error
    }
  }
}
