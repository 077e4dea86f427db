internal import ATProtocol
package import Archive
internal import Files
package import IPLD
internal import Repository

/// What an archive still has of a snapshot.
///
/// A snapshot is whole if its tree is, whichever writer numbered its sections.
package enum SnapshotState: Sendable {
  /// The order in which the sections of a whole snapshot make up its CAR.
  package enum Order: Sendable {
    /// The one that the manifest has; the CAR is the one that came in.
    case written
    /// Another one of the same sections, which was found; the CAR is the one that came in.
    case recovered(BlockOrder)
    /// That of the tree, because no order was found in which the sections are the CAR that came in;
    /// and how the CAR in this order is described.
    case canonical(BlockOrder, Snapshot.CARDescription)
  }

  /// The sections of a CAR by their ordinals in the archive, and the CAR that they make up.
  package typealias Reordered = (order: BlockOrder, car: Snapshot.CARDescription)

  /// Every tree node and record is there that it ever had.
  case whole(Order)
  /// Some of them are missing: what, in words.
  case partial(String)
  /// Nothing leads to its records: why.
  case lost(String)

  /// Whether everything is there.
  package var isWhole: Bool { if case .whole = self { true } else { false } }

  /// The order of a whole snapshot's CAR and its description, if its manifest says otherwise.
  func reordered(_ archived: ArchivedSnapshot) -> SnapshotState.Reordered? {
    switch self {
    case .whole(.recovered(let order)): (order, archived.snapshot.car)
    case .whole(.canonical(let order, let car)): (order, car)
    case .whole(.written), .partial, .lost: nil
    }
  }

  /// What is missing, in words; nil if nothing is.
  package var lack: String? {
    switch self {
    case .whole: nil
    case .partial(let lack), .lost(let lack): lack
    }
  }
}

/// Finds out what an archive still has of its snapshots.
///
/// All blocks of the archive are laid out when the first snapshot cannot be read as its manifest
/// says, and once for all of them.
package struct SnapshotExaminer {
  private let reader: ArchiveReader
  private var blocks: LaidOutBlocks?

  /// An examiner of the snapshots in an archive.
  package init(_ reader: ArchiveReader) { self.reader = reader }

  /// What there is of the snapshot that a manifest describes.
  ///
  /// - Throws: `ArchiveError` if the archive cannot be read at all; ``BackupError`` if there is no
  ///   room for a temporary file.
  package mutating func state(of manifest: CID) throws -> SnapshotState {
    do {
      return try state(of: ArchivedSnapshot(manifest, in: reader))
    } catch let error where error.isLoss {
      return .lost("its manifest cannot be read: \(error)")
    }
  }

  /// What there is of a snapshot.
  ///
  /// - Throws: As ``state(of:)-(CID)`` does.
  package mutating func state(of archived: ArchivedSnapshot) throws -> SnapshotState {
    do {
      try archived.readCAR { _ in }
      if archived.snapshot.car.sha256 != nil, try archived.hasCommit(in: archived.order()) {
        return .whole(.written)
      }
    } catch BackupError.tooLarge(let length, let limit) {
      return .lost("\(BackupError.tooLarge(length, limit: limit))")
    } catch {
      guard error.flawOfCAR != nil else { throw error }
    }
    let blocks = try self.blocks ?? LaidOutBlocks(reader, isHashing: true)
    self.blocks = blocks
    let listed = try unlessDamaged(archived.order)
    if archived.snapshot.car.sha256 != nil,
      let order = try archived.recoveredOrder(in: blocks, listed)
    {
      return .whole(order == listed ? .written : .recovered(order))
    }
    let tree = RepositoryInspection(from: archived.snapshot.commit, in: blocks)
    if let lack = tree.lack { return lack }
    // Without a digest, the order holds if it names each block that the commit leads to.
    let reached = blocks.blocksInOrderOfTree(from: archived.snapshot.commit)
    if archived.snapshot.car.sha256 == nil, let listed, listed.count == UInt64(reached.count) {
      let named = blocks.blocks(in: listed.runs)
      if reached.allSatisfy(named.contains) { return .whole(.written) }
    }
    return .whole(try archived.canonical(blocks, reached))
  }
}

extension RepositoryInspection {
  /// What is missing of a repository; nil if nothing is.
  fileprivate var lack: SnapshotState? {
    switch commitError {
    case .commitMissing(let commit): return .lost("its commit \(commit) is lost")
    case let error?: return .lost("\(error)")
    case nil: break
    }
    if let root = commit?.data, missingNodes.first == root {
      return .lost("the root of its tree, \(root), is lost")
    }
    guard !isComplete || whyRecordsAreLost != nil else { return nil }
    let parts = [
      missingNodes.isEmpty ? nil : "\(missingNodes.count) tree nodes",
      missingRecordCount == 0 ? nil : "\(missingRecordCount) records",
    ].compactMap(\.self)
    return .partial(
      parts.isEmpty ? whyRecordsAreLost ?? "" : "it lacks \(parts.joined(separator: " and "))")
  }
}

extension ArchivedSnapshot {
  /// The CAR in the order of the tree.
  ///
  /// - Parameters:
  ///   - blocks: All blocks of the archive.
  ///   - reached: Those that the commit leads to, in this order.
  fileprivate func canonical(_ blocks: LaidOutBlocks, _ reached: [Int]) throws
    -> SnapshotState.Order
  {
    var order = BlockOrder()
    for number in reached { order.append(blocks.ordinal(number)) }
    var car = snapshot.car
    var hash = SHA256()
    (car.byteCount, car.sectionCount) = (UInt64(car.header.count), order.count)
    hash.update(car.header.span)
    try reader.copyCAR(order.runs) { bytes in
      hash.update(bytes)
      car.byteCount += UInt64(bytes.count)
    }
    if car.sha256 != nil { car.sha256 = hash.finish() }
    return .canonical(order, car)
  }
}
