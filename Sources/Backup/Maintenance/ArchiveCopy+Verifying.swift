internal import ATProtocol
internal import Archive
internal import IPLD

/// Whether a copy is what it has to be, asked of the new file alone and of the old ones, not of what copied.
extension ArchiveCopy {
  /// Verifies the new archive: every byte of it, every snapshot, every CAR, every blob that was held.
  ///
  /// - Throws: ``BackupError/copyFailed(_:)`` at the first thing that is not as it has to be.
  func verify(_ storage: any ArchiveStorage) throws {
    do {
      let reader = try ArchiveReader(try storage.map())
      try checkFile(reader)
      let history = try checkHistory(reader)
      // Which sections some CAR has, so that blobs are looked for in records only.
      var isInCAR = [Bool](repeating: false, count: Int(reader.generation.sectionCount))
      for (index, pick) in picks.enumerated() {
        let snapshot = try ArchivedSnapshot(history.entries[index].cid, in: reader)
        try checkManifest(snapshot, pick)
        try checkCAR(snapshot, marking: &isInCAR)
        try checkLists(snapshot)
      }
      try checkBlobs(reader, isInCAR)
    } catch let error as ArchiveError where error.reason.isDamage {
      throw BackupError.copyFailed("\(error)")
    } catch let error as SnapshotError {
      throw BackupError.copyFailed("\(error)")
    }
  }

  private func checkFile(_ reader: ArchiveReader) throws {
    let found = try ArchiveVerifier(reader).verify { done, total in
      observer(Progress(stage: "verifying", done: done, total: total))
    }
    guard found.isIntact else {
      throw BackupError.copyFailed(found.findings.first.map { "\($0)" } ?? "it is damaged")
    }
  }

  private func checkHistory(_ reader: ArchiveReader) throws -> SnapshotHistory {
    let history = try SnapshotHistory(of: reader)
    if let broken = history.breaks.first { throw BackupError.copyFailed("\(broken)") }
    guard history.entries.count == picks.count else {
      throw BackupError.copyFailed(
        "it holds \(history.entries.count) snapshots, and \(picks.count) were copied")
    }
    return history
  }

  /// Compares a manifest with the one it is made of.
  private func checkManifest(_ snapshot: ArchivedSnapshot, _ pick: Pick) throws {
    let new = try ManifestMap(snapshot)
    let source = sources[pick.source]
    let old = try source.reading {
      try ManifestMap(ArchivedSnapshot(pick.manifest, in: source.reader))
    }
    guard new.content == old.content else {
      throw BackupError.copyFailed("a manifest does not say what \(pick.manifest) said")
    }
  }

  /// Puts a CAR together and hashes it; its sections have been hashed one by one.
  private func checkCAR(_ snapshot: ArchivedSnapshot, marking isInCAR: inout [Bool]) throws {
    let car = snapshot.snapshot.car
    let order = try snapshot.order()
    var hash = SHA256()
    hash.update(car.header.span)
    var count = UInt64(car.header.count)
    try snapshot.reader.copySections(order.runs, isHashing: false) { bytes in
      hash.update(bytes)
      count += UInt64(bytes.count)
      observer(Progress(stage: "verifying CARs", done: count, total: car.byteCount))
      guard count <= car.byteCount else { throw SnapshotError.malformedOrder }
    }
    guard count == car.byteCount, hash.finish() == car.sha256 else {
      throw BackupError.copyFailed(
        "the CAR of \(snapshot.snapshot.did), made \(snapshot.snapshot.createdAt), does not come back bit for bit"
      )
    }
    for run in order.runs {
      for ordinal in run { isInCAR[Int(ordinal)] = true }
    }
  }

  /// Looks for what the lists of a snapshot name.
  private func checkLists(_ snapshot: ArchivedSnapshot) throws {
    _ = try snapshot.missingBlobs()
    let documents = [snapshot.snapshot.didDocument, snapshot.snapshot.plcLog].compactMap(\.self)
    for cid in try snapshot.extras() + documents
    where try snapshot.reader.section(of: cid) == nil {
      throw SnapshotError.blockMissing(cid)
    }
  }

  /// Looks for every blob that a record of the new archive refers to and that one of the old ones holds.
  private func checkBlobs(_ reader: ArchiveReader, _ isInCAR: [Bool]) throws {
    var scanner = BlobRefScanner(profile: .dagCBOR)
    var referenced: Set<CID> = []
    var body: [UInt8] = []
    try reader.forEachSection { section in
      body.removeAll(keepingCapacity: true)
      // Those that are larger have been looked into when they were copied.
      let isLooked = isInCAR[Int(section.ordinal)] && section.bodyLength < 1 << 20
      return isLooked ? .read : .skip
    } chunk: { bytes in
      body.append(bytes)
    } end: { _ in
      do throws(DAGCBORError) {
        _ = try scanner.scan(body.span) { referenced.insert($0.cid) }
      } catch {
        // What is not DAG-CBOR refers to nothing.
      }
    }
    let cids = Array(referenced)
    let new = try reader.matches(cids.count) { cids[$0] }
    for source in sources {
      let old = try source.reading { try source.reader.matches(cids.count) { cids[$0] } }
      for (index, cid) in cids.enumerated() where old[index] != nil && new[index] == nil {
        throw BackupError.copyFailed("the blob \(cid) is not in it")
      }
    }
  }
}
