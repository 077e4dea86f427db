import Archive
import ArchiveTestSupport
import Failures
import Files
import Packing
import Snapshots
import SystemPackage
import Terminal
import TestSupport
import Verification

/// The first pack of an account, which makes the file, is interrupted and run again.
extension SequenceArchive {
  /// Packs an account for the first time, is interrupted, and packs it again: as it was, or as it
  /// has become meanwhile.
  mutating func packFirst() throws {
    var account = try SequenceAccount("d", &random)
    var state = try account.next(&random)
    try prepare(state)
    let path = FilePath(folder.file("first.car.zst"))
    let interruption = SequenceInterruption(&random)
    let storage = MemoryStorage([], interruption.conditions(0))
    do {
      try pack(state, into: storage, options(startsOver: true))
      return
    } catch {
      steps.append("the first pack of another account, interrupted by \(interruption): \(error)")
    }
    try folder.write(
      AtomicFile.leftoverPath(of: path).lastComponent?.string ?? "", interruption.bytes(in: storage))
    if random.next() % 3 == 0 {
      state = try account.next(&random)
      try prepare(state)
    }
    do {
      _ = try RepositoryPacker(options()).pack(
        InputFile(MappedFile(copying: state.car), named: "repo.car"),
        folders: [BlobFolder(folder.file("blobs"))], to: AtomicFile(path, replacing: false))
    } catch {
      let hint = (error as? any Explained)?.explanation.hint ?? ""
      throw Unexpected("(R) the first pack again is refused: \(error) (\(hint))")
    }
    let verdict = try SequenceFindings.requireTruth(of: folder.read("first.car.zst"), states)
    guard verdict != .damaged else {
      throw Unexpected("(Q) what the first pack made when it was run again is damaged")
    }
    try AtomicFile.remove(path)
  }
}
