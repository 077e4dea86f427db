internal import Archive
internal import Files
internal import IPLD
internal import SystemPackage

/// A commit that a server showed as an account's, and that is not the account's own.
struct RefusedCommit: Error, CustomStringConvertible {
  /// Why it is not.
  let reason: String
  /// Its CID.
  let cid: CID
  /// Its block.
  let block: [UInt8]

  var description: String { reason }
}

/// The commits that were refused for an archive: evidence, and no part of the archive.
///
/// `NAME.refused.car` beside `NAME.car.zst`: a CAR that has each of them once and names all as
/// roots, the latest last.
///
/// 1. What is in it stays in it, up to ``maximumCount`` commits; then the oldest goes.
/// 2. A file of that name that is no such CAR is left alone.
struct RefusedCommits {
  /// How many are kept at most.
  static let maximumCount = 64
  /// No longer file is taken for one, in bytes.
  private static let maximumLength = maximumCount << 20 | 1 << 20

  private let path: FilePath

  /// Those of an archive.
  init(of archive: FilePath) {
    path = FileNaming.beside(archive, ".refused.car")
  }

  /// Keeps one; answers what a person should know of that.
  func keep(_ commit: RefusedCommit) -> String {
    do {
      var kept = try read()
      if !kept.contains(where: { $0.cid == commit.cid }) {
        kept.append(Block(cid: commit.cid, bytes: commit.block))
        try write(kept.suffix(Self.maximumCount))
      }
      return "the commit is kept in \(path) as evidence"
    } catch {
      return "the commit could not be kept as evidence: \(error)"
    }
  }

  private func read() throws -> [Block] {
    guard AtomicFile.isTaken(path) else { return [] }
    let file = try InputFile(path.string)
    guard file.count <= Self.maximumLength else {
      throw BackupError.malformedDocument("\(path) is too long")
    }
    return try file.withBytes { bytes in
      let header = try CARHeader(bytes)
      var cursor = CARCursor(header: header, payload: 0..<bytes.count)
      var blocks: [Block] = []
      while let (section, cid) = try cursor.next(in: bytes) {
        blocks.append(Block(cid: cid, bytes: bytes.array(section.bodyRange)))
      }
      return blocks
    }
  }

  private func write(_ blocks: some Collection<Block>) throws {
    var car: [UInt8] = []
    CARWriter.appendHeader(roots: blocks.map(\.cid), to: &car)
    for block in blocks { CARWriter.appendSection(block.cid, block.bytes.span, to: &car) }
    try AtomicFile.save(to: path, replacing: true) { sink in try sink(car.span) }
  }
}
