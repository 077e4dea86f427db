internal import Archive
package import Files
package import HTTP
internal import IPLD
package import ObjectStore
internal import Snapshots
package import SystemPackage

/// Brings a file up to date with a remote archive, by fetching what it lacks.
///
/// 1. The file is the old archive or the new one at every moment.
/// 2. Fetched bytes are verified before they count, section by section.
package struct ArchivePull: Sendable {
  private let address: String
  private let path: FilePath
  private let server: any RangeReader
  private let replaces: Bool
  private let observer: @Sendable (Progress) -> Void

  /// A pull.
  ///
  /// - Parameters:
  ///   - address: the archive's address.
  ///   - path: the file.
  ///   - store: how to access stores.
  ///   - network: what the user set about the network.
  ///   - replaces: whether a file that is something else is replaced.
  ///   - observer: called with the progress.
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
  /// | the file | is |
  /// |---|---|
  /// | is not there | made |
  /// | is an earlier state | extended |
  /// | is the same, or a later state | left as it is |
  /// | is an earlier state, truncated, torn or damaged after some footer | extended from there |
  /// | is a beginning in which nothing is committed | replaced |
  /// | is anything else | left as it is, and refused |
  ///
  /// With `replaces`, everything is replaced except an intact state that is not a later one.
  ///
  /// - Throws: ``PushError``, ``BackupError``; `FetchFailure`; `ArchiveError` if what came is
  ///   damaged.
  package func run() throws -> TransferReport {
    let found = try BlockingBridge.shared.wait { [server] in try await RemoteObject.find(server) }
    guard let object = found else {
      throw FetchFailure(.absent, "\(address): not found")
    }
    if let layer = StorageLayers.layer(knowingEnd: object.ending.span) {
      return try pull(object, layer)
    }
    guard let footerLength = Footer.length(atEndOf: object.ending, count: object.count) else {
      throw server.isPutWhole
        ? PushError.damagedObject(address) : PushError.unfinished(address)
    }
    func opened() throws -> Remote { try Remote(object, footerLength) }
    guard AtomicFile.isTaken(path) else { return try fetchAll(opened(), .created) }
    try AtomicFile.refuseUnlessFile(path)
    let file = try MappedFile(path)
    func isState(_ count: UInt64) throws -> Bool {
      try count > 0 && BlockingBridge.shared.wait { try await object.isState(of: file, count) }
    }
    let last = try unlessFlawed { try ArchiveReader.lastGeneration(of: file) } ?? nil
    // One that has more is left alone, whatever does not hold in it.
    if !replaces, let last, last.committedLength > object.count, try isState(last.committedLength) {
      try refuseFurtherArchives(in: file)
      return TransferReport(outcome: .ahead, count: last.committedLength, transferred: 0)
    }
    let committed = try unlessFlawed { try ArchiveReader.lastReachedGeneration(of: file) } ?? nil
    let count = committed?.committedLength ?? 0
    let isEarlier = try isState(count)
    if replaces {
      guard isEarlier, count <= object.count, file.count == count, try isIntact(file) else {
        return try replace(file, opened())
      }
    }
    if isEarlier, count >= object.count {
      try refuseFurtherArchives(in: file)
      return TransferReport(
        outcome: count == object.count ? .unchanged : .ahead, count: count, transferred: 0)
    }
    let remote = try opened()
    let isCopied = try unlessFlawed {
      try (isEarlier || committed == nil)
        && file.isCopied(behind: committed, in: object.count) { try remote.read($0, $1) }
    }
    guard isCopied == true else {
      if isEarlier, committed?.footerOffset == last?.footerOffset {
        throw PushError.unfinishedCopy("\(path)", of: address)
      }
      let isArchive = committed != nil || ArchiveReader.hasTraces(in: file)
      guard try isArchive && !isIntact(file) else { throw PushError.otherObject("\(path)") }
      throw PushError.damagedCopy("\(path)", of: address)
    }
    return try isEarlier ? extend(file, to: remote, from: count) : replace(file, remote)
  }

  /// Whether the stored bytes of a file match their checksums.
  private func isIntact(_ file: MappedFile) throws -> Bool {
    try unlessFlawed { try ArchiveReader(file).verify(.quick).worst != .damaged } ?? false
  }

  /// The state of a local file; nil if it cannot be read as an archive.
  private func unlessFlawed<Value>(_ find: () throws -> Value) throws -> Value? {
    do {
      return try find()
    } catch let error as ArchiveError where error.reason == .furtherArchive {
      throw error.of("\(path)")
    } catch let error as ArchiveError where error.faultKind != .system {
      return nil
    }
  }

  private func refuseFurtherArchives(in file: MappedFile) throws {
    _ = try unlessFlawed { try file.refuseFurtherArchives() }
  }

  /// Appends what a file lacks after what is committed.
  private func extend(
    _ file: MappedFile, to remote: Remote, from count: UInt64
  ) throws -> TransferReport {
    let storage = try FileStorage.open(path)
    defer { storage.unlock() }
    guard try storage.size == file.count else { throw BackupError.changedMeanwhile("\(path)") }
    // What an interrupted or torn copy has left, all of which is fetched again.
    try storage.truncate(to: count)
    let report = try fetch(remote, from: count, into: storage, .appended)
    if AtomicFile.isPrivate(try ArchiveReader(storage.map())) { try storage.restrictToOwner() }
    return report
  }

  private func replace(_ file: MappedFile, _ remote: Remote) throws -> TransferReport {
    // What its writer continues to write would be lost with the name.
    guard !file.isBeingWritten else { throw ArchiveError(.locked) }
    return try fetchAll(remote, .replaced)
  }

  private func fetchAll(_ remote: Remote, _ outcome: TransferReport.Outcome) throws
    -> TransferReport
  {
    let file = try AtomicFile(path, replacing: outcome == .replaced)
    return try file.orDiscard {
      let report = try fetch(remote, from: 0, into: file.storage(), outcome)
      try file.publishArchive()
      return report
    }
  }

  private func fetch(
    _ remote: Remote, from start: UInt64, into storage: FileStorage,
    _ outcome: TransferReport.Outcome
  ) throws -> TransferReport {
    let count = remote.count
    try storage.extend(to: count, footerLength: remote.footerLength) { offset, length in
      try remote.read(offset, length)
    } progress: { [observer] done, total in
      observer(Progress(stage: "fetching", done: done, total: total))
    }
    return TransferReport(outcome: outcome, count: count, transferred: count - start)
  }

  // MARK: Sealed archives

  /// Pulls an archive that is not kept as it is, which takes no key.
  ///
  /// Appended bytes are appended. Where who may open it was changed in one of the two, what was
  /// changed more often counts.
  private func pull(_ object: RemoteObject, _ layer: any StorageLayer) throws -> TransferReport {
    let remote = try Remote(object, 0)
    guard AtomicFile.isTaken(path) else { return try fetchAll(remote, .created, layer) }
    try AtomicFile.refuseUnlessFile(path)
    let file = try MappedFile(path)
    if !replaces { try refuseFurtherArchives(in: file) }
    let count = file.layer?.committedLength(of: file)
    let isState = try count.map { count in
      try BlockingBridge.shared.wait { try await object.isState(of: file, count) }
    }
    guard let count, isState == true, !replaces else {
      guard replaces else { throw PushError.otherObject("\(path)") }
      guard !file.isBeingWritten else { throw ArchiveError(.locked) }
      return try fetchAll(remote, .replaced, layer)
    }
    let beginning = try BlockingBridge.shared.wait {
      try await object.beginning(layer.rewrittenLength)
    }
    let keys = try layer.keyOrder(of: beginning, to: file)
    var report = TransferReport(
      outcome: count > object.count ? .ahead : count == object.count ? .unchanged : .appended,
      count: max(count, object.count), transferred: max(count, object.count) - count)
    report.keys = keys == .same ? nil : keys == .otherIsNewer ? .taken : .kept
    if count >= object.count, keys != .otherIsNewer { return report }
    // What an interrupted pull has left can be fetched again; what an interrupted backup has left
    // may exist nowhere else.
    guard try count >= object.count || file.isBeginning(of: remote, from: count) else {
      throw PushError.unfinishedCopy("\(path)", of: address)
    }
    let storage = try FileStorage.open(path)
    defer { storage.unlock() }
    guard try storage.size == file.count else { throw BackupError.changedMeanwhile("\(path)") }
    do {
      if count < object.count {
        try storage.truncate(to: count)
        try copy(remote, from: count, into: storage)
      }
      if keys != .same { try layer.settleKeys(beginning, in: storage) }
      if count < object.count { try check(storage, remote.count, layer) }
    } catch {
      if count < object.count { try storage.truncate(to: count) }
      throw error
    }
    return report
  }

  private func fetchAll(
    _ remote: Remote, _ outcome: TransferReport.Outcome, _ layer: any StorageLayer
  ) throws -> TransferReport {
    let file = try AtomicFile(path, replacing: outcome == .replaced)
    return try file.orDiscard {
      let storage = try file.storage()
      try copy(remote, from: 0, into: storage)
      try check(storage, remote.count, layer)
      try file.publish()
      return TransferReport(outcome: outcome, count: remote.count, transferred: remote.count)
    }
  }

  /// Appends what a file lacks.
  private func copy(_ remote: Remote, from start: UInt64, into storage: FileStorage) throws {
    var offset = start
    while offset < remote.count {
      let piece = try remote.read(offset, Int(min(1 << 20, remote.count - offset)))
      try storage.write(piece.span, at: offset)
      offset += UInt64(piece.count)
      observer(
        Progress(stage: "fetching", done: offset - start, total: remote.count - start))
    }
  }

  /// Checks that what was copied is whole, and waits until it is on the medium.
  private func check(_ storage: FileStorage, _ count: UInt64, _ layer: any StorageLayer) throws {
    let file = try storage.map()
    if let flaw = try layer.flaws(of: file).first { throw flaw }
    guard layer.committedLength(of: file) == count else {
      throw ArchiveError(.truncated, offset: count)
    }
    try storage.synchronize()
  }

  // MARK: Reading

  /// The remote archive, read from the front to the back.
  fileprivate struct Remote {
    let count: UInt64
    let footerLength: Int
    private let file: MappedFile

    init(_ object: RemoteObject, _ footerLength: Int) throws {
      (count, self.footerLength) = (object.count, footerLength)
      let scratch = try TemporaryFile().duplicate()
      file = try MappedFile(FetchedFile(object, count: Int(count), scratch: FileScratch(scratch)))
    }

    func read(_ offset: UInt64, _ count: Int) throws -> [UInt8] {
      let range = Int(offset)..<Int(offset) + count
      if file.lacks(range) {
        file.willRead([
          range.lowerBound..<min(file.count, range.lowerBound + ArchivePull.aheadLength)
        ])
        try file.checkFetched()
      }
      return try file.read(offset, count)
    }
  }

  /// How many bytes are requested at a time.
  private static let aheadLength = 64 << 20
}

extension MappedFile {
  /// Whether all bytes from a place on are the same as those of the other.
  fileprivate func isBeginning(of remote: ArchivePull.Remote, from start: UInt64) throws -> Bool {
    guard UInt64(count) <= remote.count else { return start == UInt64(count) }
    var place = start
    while place < UInt64(count) {
      let length = Int(min(1 << 20, UInt64(count) - place))
      guard try read(place, length) == remote.read(place, length) else { return false }
      place += UInt64(length)
    }
    return true
  }
}
