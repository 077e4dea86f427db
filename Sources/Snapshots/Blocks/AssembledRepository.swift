internal import ATProtocol
package import Archive
package import Files
package import IPLD
package import Repository

/// The error if the available blocks are not a complete repository.
package struct IncompleteRepository: KnownFault {
  /// Something of it is missing.
  package var faultKind: FaultKind { .damage }

  package init() {}
}

/// Repositories whose blocks lie in several places. Their CARs have each block once that the commit
/// reaches, the new ones in the order in which they came, then those that a snapshot has in its
/// order.
extension CheckedRepository {
  /// What a server sent, laid over a snapshot.
  ///
  /// - Throws: ``IncompleteRepository`` if the two do not make a whole repository; `ArchiveError`
  ///   if the archive cannot be read; ``BackupError`` if there is no room for a temporary file.
  package init(_ sent: CARFile, over base: ArchivedSnapshot) throws {
    // Without a footer no number of a section is sure to stay.
    guard base.reader.generation.number > 0 else { throw IncompleteRepository() }
    let old = try base.layOutIfExact()
    try self.init(
      Overlay(sent, over: old), at: sent.header.roots.first, sent, old, base.order().runs,
      of: base.reader)
  }

  /// The blocks of a CAR that its commit reaches, in canonical order, and the blobs among the
  /// others that records refer to.
  ///
  /// - Throws: `RepositoryError` or ``BackupError`` if it is not one to pack.
  package init(
    inOrderOfTree file: CARFile, _ inspection: RepositoryInspection, archive: ArchiveReader?
  ) throws {
    let tree = file.blocksInOrderOfTree(from: file.header.roots.first)
    let blobs = inspection.blobs.entries.compactMap { file.number(of: $0.cid) }
      .filter { !inspection.reached.contains($0) }
    try self.init(
      inspection, of: file, inspection.reachedWithBlobs(in: file), file: file,
      selection: tree + blobs, archive: archive)
  }

  /// What an interrupted run has left in an archive, laid over a snapshot, if there is one.
  ///
  /// - Parameters:
  ///   - kept: the sections that it has left.
  ///   - commit: the commit.
  ///   - base: the snapshot.
  ///   - reader: the archive.
  /// - Throws: as ``init(_:over:)`` does.
  package init(
    _ kept: [Range<UInt64>], at commit: CID, over base: ArchivedSnapshot?, in reader: ArchiveReader
  ) throws {
    // Without a footer no number of a section is sure to stay, so the blocks are appended again.
    guard reader.generation.number > 0 else {
      try self.init(copying: kept, at: commit, from: reader)
      return
    }
    let blocks =
      try base?.layOutIfExact(with: kept) ?? LaidOutBlocks(kept, of: reader, keepsAll: false)
    try self.init(
      blocks, at: commit, nil, blocks, kept + (base?.order().runs ?? []), of: reader)
  }

  /// A whole repository of what came, if something did, and of sections of an archive.
  private init(
    _ source: some BlockSource, at root: CID?, _ sent: CARFile?, _ old: LaidOutBlocks,
    _ runs: [Range<UInt64>], of archive: ArchiveReader
  ) throws {
    let inspection = RepositoryInspection(from: root, in: source)
    let reached = try inspection.reachedOfWhole(in: source)
    let offset = sent?.numberLimit ?? 0
    var (order, done) = (BlockOrder(), BlockSet(count: old.numberLimit))
    old.forEach(in: runs) { ordinal, number in
      guard reached.contains(offset + number), !done.contains(number) else { return }
      done.insert(number)
      order.append(ordinal)
    }
    try self.init(
      inspection, of: source, reached, file: sent, selection: sent?.inOrder(reached) ?? [],
      archive: archive, stored: order.runs)
  }

  /// The repository of a snapshot, as its CAR has it.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)`` if it is damaged; ``BackupError`` also if there is
  ///   no room for a temporary file, or the CAR is longer than
  ///   ``RestoredRepository/maximumLength(in:)``.
  package init(of base: ArchivedSnapshot) throws {
    let (reader, car) = (base.reader, base.snapshot.car)
    try RestoredRepository.checkLength(of: base)
    let blocks: LaidOutBlocks
    let runs: [Range<UInt64>]
    do {
      guard reader.generation.number > 0 else { throw SnapshotError.noSnapshot }
      (blocks, runs) = (try base.layOut(), try base.order().runs)
    } catch {
      throw error.flawOfCAR.map { BackupError.carNotExact($0) } ?? error
    }
    var numbers: [Int] = []
    blocks.forEach(in: runs) { numbers.append($1) }
    let ordinals = try reader.ordinals(numbers.count) { [numbers] in blocks.cid(numbers[$0]) }
    guard !ordinals.contains(.max) else {
      // What lies in a damaged frame is written again, and that takes all of the CAR.
      let restored = try RestoredRepository(base)
      if let flaw = restored.flaw { throw BackupError.carNotExact(flaw) }
      try self.init(restored.mapped, archive: reader, isHashed: true) { _ in }
      return
    }
    var order = BlockOrder()
    for ordinal in ordinals { order.append(ordinal) }
    try self.init(
      RepositoryInspection(from: CARHeader(car.header.span).roots.first, in: blocks),
      of: blocks, blocks.blocks(in: runs), file: nil, selection: [], archive: reader,
      stored: order.runs, header: car.header)
    if let digest = car.sha256, digest != sha256 {
      throw BackupError.carNotExact("its SHA-256 is not the one in the manifest")
    }
  }

  /// The blocks among sections of an archive that a commit reaches, in a file.
  private init(copying kept: [Range<UInt64>], at commit: CID, from reader: ArchiveReader) throws {
    let spool = try TemporaryFile()
    try spool.write(CARHeader(roots: [commit]).bytes.span)
    try reader.copySections(kept) { try spool.write($0) }
    let file = try CARFile(spool.map(), verifying: false)
    let inspection = RepositoryInspection(of: file)
    let reached = try inspection.reachedOfWhole(in: file)
    try self.init(
      inspection, of: file, reached, file: file, selection: file.inOrder(reached), archive: reader)
  }
}

extension Snapshot.Counts {
  /// What a repository consists of.
  package init(_ inspection: RepositoryInspection) {
    self.init(
      records: inspection.recordCount, nodes: inspection.nodeCount,
      blocks: inspection.distinctBlockCount, recordBlocks: inspection.distinctRecordCount)
  }
}

extension CheckedRepository {
  /// What a manifest says of the repository itself.
  package var draft: Snapshot {
    Snapshot(
      commit, at: inspection.header.roots[0], Snapshot.Counts(inspection), inspection.unreadable,
      isComplete: inspection.isComplete, blobCount: inspection.blobs.entries.count)
  }
}

extension RepositoryInspection {
  /// The blocks that the commit reaches, and the blobs among the others that records refer to.
  package func reachedWithBlobs(in source: some BlockSource) -> BlockSet {
    var reached = reached
    for blob in blobs.entries {
      if let number = source.number(of: blob.cid) { reached.insert(number) }
    }
    return reached
  }

  /// The reachable blocks of a repository that must be complete.
  ///
  /// - Throws: ``IncompleteRepository``.
  fileprivate func reachedOfWhole(in source: some BlockSource) throws -> BlockSet {
    guard isComplete, treeProblemCount == 0 else { throw IncompleteRepository() }
    return reachedWithBlobs(in: source)
  }
}

extension ArchivedSnapshot {
  /// Lays out the sections that the manifest names.
  ///
  /// - Parameter others: further sections of the archive.
  /// - Throws: ``IncompleteRepository`` if the snapshot is damaged.
  fileprivate func layOutIfExact(with others: [Range<UInt64>] = []) throws -> LaidOutBlocks {
    do {
      return try layOut(with: others)
    } catch BackupError.carNotExact {
      throw IncompleteRepository()
    } catch let error where error.isLoss {
      throw IncompleteRepository()
    }
  }
}

extension CheckedRepository {
  /// Appends the blocks that an archive does not have, in the order of the CAR, and the order if it
  /// is too long for a manifest.
  ///
  /// They were hashed when the CAR was inspected and are not hashed again, so before anything is
  /// committed the file has to prove to be the one that was inspected.
  ///
  /// - Parameters:
  ///   - writer: the archive.
  ///   - base: the snapshot before this one of the same account, to which the order may be
  ///     relative.
  ///   - observer: called with the progress.
  /// - Returns: What the manifest says of the CAR.
  package func pack(
    into writer: inout ArchiveWriter, after base: ArchivedSnapshot?,
    _ observer: Progress.Observer = { _ in }
  ) throws -> Snapshot.CARDescription {
    let known = try ordinals.get()
    var order = BlockOrder()
    var reported = 0
    for index in 0..<newCount {
      guard let file else { break }
      try file.withSection(at: start(index)) { bytes, section throws in
        let cid = CARSection.cid(at: section.start, in: bytes)
        let body = bytes.extracting(section.bodyRange)
        if index < known.count, known[index] != .max {
          if cid.multihash.sha256 == nil { try checkUnverifiable(cid, body, writer.reader) }
          order.append(known[index])
        } else {
          order.append(try writer.append(verified: cid, body))
        }
        guard section.end - reported >= 1 << 20 else { return }
        reported = section.end
        observer(Progress(stage: "packing", done: UInt64(reported), total: byteCount))
      }
    }
    for run in stored { order.append(run) }
    return try order.describe(
      header, byteCount: byteCount, sha256: sha256, after: base, into: &writer)
  }

  /// Under a hash function that is unknown here the same CID may name other bytes, and then one
  /// file cannot hold both.
  private func checkUnverifiable(_ cid: CID, _ body: Span<UInt8>, _ reader: ArchiveReader?) throws {
    guard cid.verify(body) == .cannotVerify else { return }
    guard let stored = try reader?.body(of: cid), stored.span.equals(body) else {
      throw BackupError.malformedRepository(
        "the archive holds different bytes for \(cid), whose hash function is unknown")
    }
  }
}
