internal import Archive
package import Files
package import HTTP
package import ObjectStore
internal import Snapshots
package import SystemPackage

/// Brings a file up to date with an archive that lies elsewhere, by fetching what it lacks.
///
/// 1. The file is the old archive or the new one at every moment.
/// 2. What comes is verified before it counts, section by section.
package struct ArchivePull: Sendable {
  private let address: String
  private let path: FilePath
  private let server: any RangeReader
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
  ///   - observer: called with how far it has come.
  /// - Throws: `StoreError` or `TransportError` if the address cannot be used.
  package init(
    _ address: String, to path: FilePath, _ store: StoreOptions, network: NetworkOptions,
    replaces: Bool, observer: @escaping @Sendable (Progress) -> Void = { _ in }
  ) throws {
    (self.address, self.path, self.replaces) = (RemoteArchive.shown(address), path, replaces)
    self.observer = observer
    server = try RemoteArchive.reader(address, store, network)
  }

  /// A pull from another kind of server, for tests.
  init(from server: any RangeReader, to path: FilePath, replaces: Bool) {
    (self.server, self.path, self.replaces) = (server, path, replaces)
    (address, observer) = (server.name, { _ in })
  }

  /// Pulls.
  ///
  /// - Throws: ``PushError``, ``BackupError``; `FetchFailure`; `ArchiveError` if what came is
  ///   damaged.
  package func run() throws -> TransferReport {
    let found = try BlockingBridge.shared.wait { [server] in try await RemoteObject.find(server) }
    guard let object = found else {
      throw FetchFailure(.absent, "\(address): there is nothing there")
    }
    guard let footerLength = Footer.length(atEndOf: object.ending, count: object.count) else {
      throw PushError.unfinished(address)
    }
    guard AtomicFile.isTaken(path) else { return try fetchAll(object, footerLength, .created) }
    let (file, count) = try MappedFile.committed(path)
    if try BlockingBridge.shared.wait(for: { try await object.isState(of: file, count) }) {
      guard count < object.count else {
        return TransferReport(
          outcome: count == object.count ? .unchanged : .ahead, count: count, transferred: 0)
      }
      let storage = try FileStorage.open(path)
      defer { storage.unlock() }
      guard try storage.size == count else { throw PushError.unfinished("\(path)") }
      let report = try fetch(object, footerLength, from: count, into: storage, .appended)
      if AtomicFile.isPrivate(try ArchiveReader(storage.map())) { try storage.restrictToOwner() }
      return report
    }
    guard replaces else { throw PushError.otherObject("\(path)") }
    return try fetchAll(object, footerLength, .replaced)
  }

  private func fetchAll(
    _ object: RemoteObject, _ footerLength: Int, _ outcome: TransferReport.Outcome
  ) throws -> TransferReport {
    let file = try AtomicFile(path, replacing: outcome == .replaced)
    do {
      let report = try fetch(object, footerLength, from: 0, into: file.storage(), outcome)
      try file.publishArchive()
      return report
    } catch {
      file.discard()
      throw error
    }
  }

  private func fetch(
    _ object: RemoteObject, _ footerLength: Int, from start: UInt64, into storage: FileStorage,
    _ outcome: TransferReport.Outcome
  ) throws -> TransferReport {
    let scratch = try TemporaryFile().duplicate()
    let reader = try MappedFile(FetchedFile(object, count: Int(object.count), scratch: scratch))
    try storage.extend(to: object.count, footerLength: footerLength) { offset, count in
      let range = Int(offset)..<Int(offset) + count
      if reader.lacks(range) {
        reader.willRead([
          range.lowerBound..<min(Int(object.count), range.lowerBound + Self.aheadLength)
        ])
        try reader.checkFetched()
      }
      return try reader.read(offset, count)
    } progress: { [observer] done, total in
      observer(Progress(stage: "fetching", done: done, total: total))
    }
    return TransferReport(outcome: outcome, count: object.count, transferred: object.count - start)
  }

  /// How many bytes are asked for at a time.
  private static let aheadLength = 64 << 20
}
