internal import Repository
internal import Snapshots

/// Blocks that a server sent and that are not part of the repository: which of them are stored all
/// the same.
///
/// Some servers send blocks of earlier commits, and a CAR that came in is given back bit for bit,
/// so a few are kept. They are left out once they outweigh the repository: nothing says what they
/// are, and a server could fill any disk with them.
extension Snapshot.LeftOut {
  /// How many bytes they may have beyond what the repository has.
  private static let allowance = 1 << 20
  /// What a block counts for beside its bytes: what it takes in tables and indexes.
  private static let overhead = 64

  /// What is left out of the file of a repository; nil if it is too little.
  init?(of repository: CheckedRepository) {
    guard let file = repository.file else { return nil }
    self.init(
      of: file, using: (0..<repository.newCount).map(repository.start),
      own: (
        Int(clamping: repository.sectionCount),
        Int(clamping: repository.byteCount) - repository.header.count
      ))
  }

  /// What is left out of a CAR; nil if it is too little.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - starts: where its sections begin that are part of the repository.
  ///   - own: how many blocks and bytes the repository has; nil if it has these alone.
  init?(of file: CARFile, using starts: [Int], own: (blocks: Int, bytes: Int)? = nil) {
    let usedBytes = file.byteCount(ofSectionsAt: starts)
    let (ownBlocks, ownBytes) = own ?? (starts.count, usedBytes)
    let blocks = file.sectionCount - starts.count
    let bytes = file.sectionByteCount - usedBytes
    guard
      bytes + blocks * Self.overhead > ownBytes + ownBlocks * Self.overhead + Self.allowance
    else { return nil }
    self.init(blocks: blocks, bytes: bytes)
  }
}
