internal import Archive
internal import IPLD
internal import Snapshots
internal import SystemPackage

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

  /// What is left out of the first of the CARs that a repository is in; nil if it is too little.
  static func of(_ repository: CommittedBlocks) -> Snapshot.LeftOut? {
    let used = repository.amounts[0]
    let own = repository.amounts.reduce(0) { $0 + $1.bytes + $1.count * overhead }
    return of(repository.sources[0], used: used.count, bytes: used.bytes, own: own)
  }

  /// What is left out of a CAR; nil if it is too little.
  ///
  /// - Parameters:
  ///   - source: the CAR.
  ///   - usedCount: how many of its blocks are part of the repository.
  ///   - usedBytes: how many bytes the sections of these have.
  ///   - own: what the repository counts for.
  static func of(
    _ source: CommittedBlocks.Source, used usedCount: Int, bytes usedBytes: Int, own: Int
  ) -> Snapshot.LeftOut? {
    let count = source.sectionCount - usedCount
    let bytes = source.byteCount - usedBytes
    guard bytes + count * overhead > own + allowance else { return nil }
    return Snapshot.LeftOut(blocks: count, bytes: bytes)
  }
}
