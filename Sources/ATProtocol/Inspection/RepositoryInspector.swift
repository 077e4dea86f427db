package import IPLD

/// Reads a repository CAR from end to end and reports everything that is wrong with it, not only
/// the first thing.
///
/// Every block is hashed, the whole tree is walked and checked, every record is checked and
/// searched for blobs. The CAR lies in memory or, better, in a mapped file; what is allocated is a
/// `BlockTable` and what the report lists.
package struct RepositoryInspector {
  /// A record that the walk came to.
  package struct Record {
    /// Its key in the tree, `collection/rkey`.
    package let key: [UInt8]
    /// Its block.
    package let cid: CID
    /// Where its block lies in the CAR; nil if it is not there.
    package let body: Range<Int>?
  }

  /// Inspects a CAR, on several cores.
  ///
  /// - Parameters:
  ///   - bytes: the whole file, of version 1 or 2.
  ///   - verifying: false leaves out hashing the blocks, for bytes that were hashed already.
  ///   - workers: on how many cores; nil for all.
  ///   - progress: is told now and then how many bytes of the CAR have been read.
  /// - Throws: `CARError` when the bytes do not even begin as a CAR; everything later is part of
  ///   the report.
  package static func inspect(
    _ bytes: Span<UInt8>, verifying: Bool = true, workers: Int? = nil,
    progress: (Int) -> Void = { _ in }
  ) throws(CARError) -> RepositoryInspection {
    let workers = workers ?? Parallel.processorCount
    return try inspect(bytes, verifying, workers, progress) { commit, blocks in
      TreeParts.read(root: commit.data, blocks, bytes, workers: workers)
        ?? TreeReader.read(root: commit.data, blocks, bytes) { _ in }
    }
  }

  /// Inspects a CAR, and gives out its records in the order of the tree, which one core walks.
  ///
  /// - Parameters:
  ///   - bytes: the whole file, of version 1 or 2.
  ///   - verifying: false leaves out hashing the blocks, for bytes that were hashed already.
  ///   - progress: is told now and then how many bytes of the CAR have been read.
  ///   - visit: receives every record.
  /// - Throws: `CARError` when the bytes do not even begin as a CAR; everything later is part of
  ///   the report.
  package static func inspect(
    _ bytes: Span<UInt8>, verifying: Bool = true, progress: (Int) -> Void = { _ in },
    visit: (Record) -> Void
  ) throws(CARError) -> RepositoryInspection {
    try inspect(bytes, verifying, Parallel.processorCount, progress) { commit, blocks in
      TreeReader.read(root: commit.data, blocks, bytes, visit: visit)
    }
  }

  private static func inspect(
    _ bytes: Span<UInt8>, _ isVerifying: Bool, _ workers: Int, _ progress: (Int) -> Void,
    _ readTree: (Commit, BlockTable) -> (TreeReader, MSTWalker)
  ) throws(CARError) -> RepositoryInspection {
    var intake = try CARIntake(bytes, isVerifying: isVerifying, workers: workers)
    intake.readAll(bytes, progress: progress)
    var (inspection, blocks) = (intake.inspection, intake.blocks)
    do throws(RepositoryError) {
      let (commit, place) = try commit(of: inspection.header, blocks, bytes)
      inspection.commit = commit
      let (reader, walker) = readTree(commit, blocks)
      reader.finish(walker, commit: place, into: &inspection)
    } catch {
      inspection.commitError = error
    }
    inspection.blocks = blocks
    return inspection
  }

  private static func commit(
    of header: CARHeader, _ blocks: BlockTable, _ bytes: Span<UInt8>
  ) throws(RepositoryError) -> (Commit, place: Int) {
    guard let root = header.roots.first else { throw .noRoot }
    guard let place = blocks.place(of: root, in: bytes) else { throw .commitMissing(root) }
    return (try Commit(bytes.extracting(blocks.body(place, in: bytes))), place)
  }
}
