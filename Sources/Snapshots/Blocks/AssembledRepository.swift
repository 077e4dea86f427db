internal import ATProtocol
package import Archive
package import Files
package import IPLD
package import Repository

/// That the blocks at hand do not make a whole repository.
package struct IncompleteRepository: Error {}

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
    let source = Overlay(sent, over: try base.layOutIfExact())
    let inspection = RepositoryInspection(
      from: sent.header.roots.first, in: source, length: sent.file.count + source.old.byteCount)
    let reached = try Self.reached(inspection, in: source)
    let stored = Self.ordinals(try base.order().runs, reached, source.old, offset: sent.numberLimit)
    try self.init(
      inspection, of: source, reached, file: sent, selection: sent.inOrder(reached),
      archive: base.reader, stored: stored.runs)
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
    let blocks: LaidOutBlocks
    if let base {
      blocks = try base.layOutIfExact(with: kept)
    } else {
      var intake = try BlockIntake(isHashing: true)
      for run in kept { try intake.read(run, reader) }
      guard intake.failure == nil else { throw IncompleteRepository() }
      blocks = try LaidOutBlocks(intake)
    }
    let inspection = RepositoryInspection(from: commit, in: blocks, length: blocks.byteCount)
    let reached = try Self.reached(inspection, in: blocks)
    let stored = Self.ordinals(kept + (try base?.order().runs ?? []), reached, blocks, offset: 0)
    try self.init(
      inspection, of: blocks, reached, file: nil, selection: [], archive: reader,
      stored: stored.runs)
  }

  /// The blocks among sections of an archive that a commit reaches, in a file.
  private init(copying kept: [Range<UInt64>], at commit: CID, from reader: ArchiveReader) throws {
    let spool = try TemporaryFile()
    try spool.write(CARHeader(roots: [commit]).bytes.span)
    try reader.copySections(kept) { try spool.write($0) }
    let file = try CARFile(spool.map(), verifying: false)
    let inspection = RepositoryInspection(of: file)
    let reached = try Self.reached(inspection, in: file)
    try self.init(
      inspection, of: file, reached, file: file, selection: file.inOrder(reached), archive: reader)
  }

  /// Which blocks a repository has that has to be whole: those that the commit reaches, and blobs.
  private static func reached(
    _ inspection: RepositoryInspection, in source: some BlockSource
  ) throws -> BlockSet {
    guard inspection.isComplete, inspection.treeProblemCount == 0 else {
      throw IncompleteRepository()
    }
    return inspection.reachedWithBlobs(in: source)
  }

  /// The sections of an order that are the blocks which were reached, each once.
  private static func ordinals(
    _ runs: [Range<UInt64>], _ reached: BlockSet, _ blocks: LaidOutBlocks, offset: Int
  ) -> BlockOrder {
    var (order, done) = (BlockOrder(), BlockSet(count: blocks.count))
    blocks.forEach(in: runs) { ordinal, number in
      guard reached.contains(offset + number), !done.contains(number) else { return }
      done.insert(number)
      order.append(ordinal)
    }
    return order
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
}

extension ArchivedSnapshot {
  /// Lays out the sections that the manifest names.
  ///
  /// - Parameter others: further sections of the archive.
  /// - Throws: ``IncompleteRepository`` if the snapshot is damaged.
  fileprivate func layOutIfExact(with others: [Range<UInt64>] = []) throws -> LaidOutBlocks {
    do {
      if let blocks = try unlessDamaged({ try layOut(with: others) }) { return blocks }
    } catch BackupError.carNotExact {}
    throw IncompleteRepository()
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
  ///   - observer: is told how far it is.
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
        "the archive holds other bytes under \(cid), whose hash function is unknown here")
    }
  }
}
