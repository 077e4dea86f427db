internal import IPLD
internal import Repository
internal import Snapshots

/// Blocks that a server sent and that are not part of the repository: which of them are stored all
/// the same.
///
/// Some servers send blocks of earlier commits, and a CAR that came in is given back bit for bit,
/// so a few are kept. They are left out once they outweigh the repository: nothing says what they
/// are, and a server could fill any disk with them.
enum LeftOutBlocks {
  /// How many bytes they may have beyond what the repository has.
  static let allowance = 1 << 20
  /// What a block counts for beside its bytes: what it takes in tables and indexes.
  static let overhead = 64

  /// What is left out of the file of a repository; nil if it is too little.
  static func of(_ repository: CheckedRepository) -> Snapshot.LeftOut? {
    guard let file = repository.file else { return nil }
    let starts = (0..<repository.newCount).map(repository.start)
    let count = Int(clamping: repository.sectionCount)
    return of(
      file, used: starts.count, bytes: file.byteCount(ofSectionsAt: starts),
      own: Int(clamping: repository.byteCount) - repository.header.count + count * overhead)
  }

  /// What is left out of a CAR if only some blocks of it are used; nil if it is too little.
  static func of(_ file: CARFile, besides used: BlockSet) -> Snapshot.LeftOut? {
    let starts = used.map(file.start(of:))
    guard starts.count < file.sectionCount else { return nil }
    let bytes = file.byteCount(ofSectionsAt: starts)
    return of(file, used: starts.count, bytes: bytes, own: bytes + starts.count * overhead)
  }

  /// What is left out of a CAR; nil if it is too little.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - usedCount: how many of its blocks are part of the repository.
  ///   - usedBytes: how many bytes the sections of these have.
  ///   - own: what the repository counts for.
  static func of(
    _ file: CARFile, used usedCount: Int, bytes usedBytes: Int, own: Int
  ) -> Snapshot.LeftOut? {
    let count = file.sectionCount - usedCount
    let bytes = file.sectionByteCount - usedBytes
    guard bytes + count * overhead > own + allowance else { return nil }
    return Snapshot.LeftOut(blocks: count, bytes: bytes)
  }
}
