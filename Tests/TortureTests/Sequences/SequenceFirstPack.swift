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
  /// has become in the meantime.
  mutating func packFirst() throws {
    var account = try SequenceAccount("d", &random)
    var state = try account.next(&random)
    try prepare(state)
    let path = FilePath(folder.file("first.car.zst"))
    guard let left = try leftover(of: state) else { return }
    try Torture.keep(left, "first.car.zst.partial")
    try folder.write(AtomicFile.leftoverPath(of: path).lastComponent?.string ?? "", left)
    // What is whole is not given up for another state of the account.
    if random.next() % 3 == 0, ForwardWalk(left).bodies.isEmpty {
      state = try account.next(&random)
      try prepare(state)
      steps.append("another state of it is packed")
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
      .verdict
    guard verdict != .damaged else {
      throw Unexpected("(Q) what the first pack made when it was run again is damaged")
    }
    try AtomicFile.remove(path)
  }

  /// What the first pack leaves when it is interrupted; nil if it is not.
  ///
  /// A file system may have the length on the disk, and of the content this many pages and zeros.
  private mutating func leftover(of state: SequenceAccount.State) throws -> [UInt8]? {
    let words = "the first pack of another account is interrupted"
    guard random.next() % 3 > 0 else {
      let storage = MemoryStorage()
      try pack(state, into: storage, options(startsOver: true))
      var bytes = storage.bytes
      let count = min(bytes.count, 512 << Int(random.next() % 6))
      bytes.replaceSubrange(count..., with: repeatElement(0, count: bytes.count - count))
      steps.append("\(words): of \(bytes.count) bytes \(count) are written, and zeros")
      return bytes
    }
    let interruption = SequenceInterruption(&random)
    let storage = MemoryStorage([], interruption.conditions(0))
    do {
      try pack(state, into: storage, options(startsOver: true))
      return nil
    } catch {
      steps.append("\(words) by \(interruption): \(error)")
      return interruption.bytes(in: storage)
    }
  }
}
