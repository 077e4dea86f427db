internal import ATProtocol
internal import Archive
package import IPLD

/// Inspecting reports everything that is wrong with a repository, not only the first thing: the
/// whole tree is walked and checked, every record is checked and searched for blobs.
extension RepositoryInspection {
  /// A record that the walk came to.
  package struct Record: Sendable {
    /// Its key in the tree, `collection/rkey`.
    package let key: [UInt8]
    /// Its block.
    package let cid: CID
    /// The number of its block; nil if that is not there.
    package let number: Int?
  }

  /// Inspects the repository in a CAR, on several cores.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - workers: on how many cores; nil for all.
  package init(of file: CARFile, workers: Int? = nil) {
    self = file.found
    let length = file.file.count
    inspect(file, length: length) { root in
      TreeParts.read(
        file, root: root, blockCount: file.found.distinctBlockCount, length: length,
        workers: workers ?? Parallel.processorCount)
    }
  }

  /// Inspects the repository in a CAR, and gives out its records in the order of the tree, which one
  /// core walks.
  package init(of file: CARFile, visit: (Record) -> Void) {
    self = file.found
    inspect(file, length: file.file.count, visit: visit)
  }

  /// Inspects the repository that a commit and the blocks of a source make up.
  ///
  /// - Parameters:
  ///   - root: the commit.
  ///   - source: the blocks.
  ///   - length: how many bytes they have, for a limit to how much is scanned again.
  ///   - visit: receives every record in the order of the tree.
  package init<Source: BlockSource>(
    from root: CID?, in source: Source, length: Int, visit: (Record) -> Void = { _ in }
  ) {
    self.init()
    header = CARHeader(roots: root.map { [$0] } ?? [])
    inspect(source, length: length, visit: visit)
    distinctBlockCount = reached.count
    unreachableBlockCount = 0
  }

  /// Inspects a repository of which only the header is known yet.
  ///
  /// - Parameters:
  ///   - source: its blocks.
  ///   - length: how many bytes they have.
  ///   - readInParts: reads the tree with this root on several cores; answers nil if that cannot be
  ///     done.
  ///   - visit: receives every record in the order of the tree, unless it is read in parts.
  private mutating func inspect<Source: BlockSource>(
    _ source: Source, length: Int,
    readInParts: (CID) -> (TreeInspector<Source>, MSTWalker)? = { _ in nil },
    visit: (Record) -> Void = { _ in }
  ) {
    let (commit, place): (Commit, Int)
    do throws(RepositoryError) {
      (commit, place) = try source.commit(header.roots.first)
    } catch {
      commitError = error
      return
    }
    self.commit = commit
    var reader = TreeInspector(source, rescanLimit: length)
    if let (found, walker) = readInParts(commit.data) {
      reader = found
      reader.finish(walker, into: &self)
    } else {
      reader.finish(reader.read(MSTWalker(root: commit.data), visit: visit), into: &self)
    }
    reached = reader.reached(from: place)
    unreachableBlockCount = distinctBlockCount - reached.count
  }
}
