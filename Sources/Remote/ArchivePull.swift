internal import Archive
package import Files
internal import IPLD
package import ObjectStore
internal import Snapshots
package import SystemPackage
package import XRPC

/// Brings a file up to date with an archive that lies elsewhere, by fetching what it lacks.
///
/// 1. The file is the old archive or the new one at every moment.
/// 2. What comes is verified before it counts, section by section.
package struct ArchivePull: Sendable {
  private let address: String
  private let path: FilePath
  private let server: any RangeServer
  private let replaces: Bool
  private let observer: @Sendable (Progress) -> Void

  /// A pull.
  ///
  /// - Parameters:
  ///   - address: where the archive lies.
  ///   - path: the file.
  ///   - store: how stores are asked.
  ///   - network: what the user set about the network.
  ///   - replaces: whether a file that is something else is replaced.
  ///   - observer: is told how far it has come.
  /// - Throws: `StoreError` or `TransportError` if the address cannot be used.
  package init(
    _ address: String, to path: FilePath, _ store: StoreOptions, network: NetworkOptions,
    replaces: Bool, observer: @escaping @Sendable (Progress) -> Void = { _ in }
  ) throws {
    (self.address, self.path, self.replaces) = (FarArchive.shown(address), path, replaces)
    self.observer = observer
    server = try FarArchive.server(address, store, network)
  }

  /// Pulls.
  ///
  /// - Throws: ``PushError``, ``BackupError``; `FetchFailure`; `ArchiveError` if what came is damaged.
  package func run() throws -> TransferReport {
    let server = server
    guard let head = try TransferThread.shared.wait(for: { try await FarHead.of(server) }) else {
      throw FetchFailure(.absent, "\(address): there is nothing there")
    }
    guard
      let footerLength = ArchiveContinuation.footerLength(
        atEndOf: head.ending, count: head.count)
    else {
      throw PushError.unfinished(address)
    }
    guard AtomicFile.isTaken(path) else { return try fetchAll(head, footerLength, .created) }
    let committed = try CommittedBytes(path)
    if committed.count >= head.count {
      if try committed.ending(at: head.count).suffix(head.ending.count).elementsEqual(head.ending) {
        return TransferReport(
          outcome: committed.count == head.count ? .unchanged : .ahead, count: committed.count,
          transferred: 0)
      }
    } else if try isContinued(committed, by: head) {
      guard committed.tailLength == 0 else { throw PushError.unfinished("\(path)") }
      let storage = try FileStorage.open(path)
      defer { storage.unlock() }
      guard try storage.size == committed.count else { throw PushError.unfinished("\(path)") }
      let report = try fetch(
        head, footerLength, from: committed.count, into: storage, .appended)
      if AtomicFile.isPrivate(try ArchiveReader(storage.map())) { try storage.restrictToOwner() }
      return report
    }
    guard replaces else { throw PushError.otherObject("\(path)") }
    return try fetchAll(head, footerLength, .replaced)
  }

  /// Whether the object begins with what is committed here.
  private func isContinued(_ committed: CommittedBytes, by head: FarHead) throws -> Bool {
    let ending = try committed.ending(at: committed.count)
    let range = committed.count - UInt64(ending.count)..<committed.count
    let server = server
    return try TransferThread.shared.wait { try await head.bytes(range, from: server) } == ending
  }

  private func fetchAll(_ head: FarHead, _ footerLength: Int, _ outcome: TransferReport.Outcome)
    throws -> TransferReport
  {
    let file = try AtomicFile(path, replacing: outcome == .replaced)
    do {
      let report = try fetch(head, footerLength, from: 0, into: file.storage(), outcome)
      try file.publishArchive()
      return report
    } catch {
      file.discard()
      throw error
    }
  }

  private func fetch(
    _ head: FarHead, _ footerLength: Int, from start: UInt64, into storage: FileStorage,
    _ outcome: TransferReport.Outcome
  ) throws -> TransferReport {
    let scratch = try TemporaryFile().duplicate()
    let object = FarObject(server, head)
    let file = try FetchedFile(object, count: Int(head.count), scratch: scratch)
    let reader = try MappedFile(file)
    try ArchiveContinuation(storage).extend(to: head.count, footerLength: footerLength) {
      offset, count in
      let range = Int(offset)..<Int(offset) + count
      if reader.lacks(range) {
        reader.willRead([
          range.lowerBound..<min(Int(head.count), range.lowerBound + Self.aheadLength)
        ])
        try reader.checkFetched()
      }
      return reader.withBytes { bytes in bytes.array(range) }
    } progress: { [observer] done, total in
      observer(Progress(stage: "fetching", done: done, total: total))
    }
    return TransferReport(outcome: outcome, count: head.count, transferred: head.count - start)
  }

  /// How many bytes are asked for at a time.
  private static let aheadLength = 64 << 20
}
