internal import Archive
package import Files
internal import HTTP
internal import IPLD
internal import ObjectStore
package import SystemPackage

/// Brings an object in a bucket up to date with a local archive, by sending what it lacks.
///
/// 1. The object is the old one or the new one at every moment, never a part of either.
/// 2. An object that is not an earlier state of the archive is left alone, unless it is to be
///    replaced; then the archive is sent under another key, read back, and put in its place by the
///    store.
package struct ArchivePush: Sendable {
  private let destination: BucketDestination
  private let isVerifying: Bool
  private let replaces: Bool
  private let path: FilePath
  private var file: MappedFile
  private let count: UInt64
  private let observer: @Sendable (Progress) -> Void

  /// A push.
  ///
  /// - Parameters:
  ///   - path: the archive.
  ///   - destination: the object.
  ///   - isVerifying: whether the object is read back and compared, all of it, and what is damaged
  ///     replaced.
  ///   - replaces: whether an object that is something else is replaced.
  ///   - observer: called with the progress.
  /// - Throws: `ArchiveError` if the file is not an archive.
  package init(
    _ path: FilePath, to destination: BucketDestination, isVerifying: Bool, replaces: Bool,
    observer: @escaping @Sendable (Progress) -> Void = { _ in }
  ) throws {
    (self.destination, self.isVerifying, self.replaces) = (destination, isVerifying, replaces)
    (self.observer, self.path) = (observer, path)
    (file, count) = try MappedFile.committed(path)
  }

  /// Pushes.
  ///
  /// - Throws: ``PushError``; `FetchFailure`, `StoreError`, `TransportError`; ``BackupError``.
  package func run() async throws -> TransferReport {
    guard let mark = try UploadLock(place, of: destination) else {
      throw PushError.busy("\(place)")
    }
    defer { mark.release() }
    try await destination.object(place.key, mark).giveUpLeftovers()
    // An append to another writer's object may or may not be possible.
    return try await BucketDestination.retryingLostRaces { try await push(mark) }
  }

  private var place: BucketAddress { destination.place }
  private var object: BucketObject { destination.object(place.key) }

  private func push(_ mark: UploadLock) async throws -> TransferReport {
    guard let found = try await RemoteObject.find(object) else {
      return try await checked(.created, sent: write(nil, mark), mark)
    }
    if try await found.isState(of: file, count) {
      switch try await keyOrder(found) {
      case .same: break
      case .otherIsOlder:
        return TransferReport(
          outcome: .replaced, count: count, transferred: try await replace(found, mark),
          isVerified: isVerifying, keys: .kept)
      case .otherIsNewer:
        var next = self
        next.file = try await takeKeys(found)
        var report = try await next.push(mark)
        report.keys = .taken
        return report
      }
      if found.count > count {
        return TransferReport(outcome: .ahead, count: found.count, transferred: 0)
      }
      if found.count == count { return try await checked(.unchanged, sent: 0, mark) }
      if found.count > 0 {
        let tag = try found.requireTag()
        return try await checked(
          .appended, sent: write(tag, kept: (place.key, tag, found.count), mark), mark)
      }
    }
    guard replaces else { throw PushError.otherObject("\(place)") }
    return TransferReport(
      outcome: .replaced, count: count, transferred: try await replace(found, mark),
      isVerified: isVerifying)
  }

  /// Which of the two had who may open it changed more often.
  private func keyOrder(_ found: RemoteObject) async throws -> KeyOrder {
    guard let layer = file.layer else { return .same }
    return try layer.keyOrder(of: await found.beginning(layer.rewrittenLength), to: file)
  }

  /// The archive, after who may open the object may open it.
  private func takeKeys(_ found: RemoteObject) async throws -> MappedFile {
    guard let layer = file.layer else { return file }
    let beginning = try await found.beginning(layer.rewrittenLength)
    let storage = try FileStorage.open(path)
    defer { storage.unlock() }
    guard try storage.size == file.count else { throw BackupError.changedMeanwhile("\(path)") }
    try layer.settleKeys(beginning, in: storage)
    return try MappedFile(path)
  }

  /// Puts the new object in the place of the old; returns how many bytes were sent.
  private func write(
    _ tag: String?, kept: (key: String, tag: String, count: UInt64)? = nil, _ mark: UploadLock
  ) async throws -> UInt64 {
    try await destination.replace(place.key, tag, by: content(kept: kept), mark).sent
  }

  private func content(
    kept: (key: String, tag: String, count: UInt64)? = nil
  ) -> BucketObject.Content {
    BucketObject.Content(file: file, count: count, kept: kept) { [count, observer] offset in
      observer(Progress(stage: "sending", done: offset, total: count))
    }
  }

  /// Sends everything under another key, reads it back, and has the store put it in the place of
  /// the object with a tag; returns how many bytes were sent.
  ///
  /// What is read back protects the old object. Whether the store then did as it said, only the new
  /// one shows, which is read if the user wants that.
  private func replace(_ old: RemoteObject, _ mark: UploadLock) async throws -> UInt64 {
    let old = try old.requireTag()
    try await destination.requireConditionalWrites(for: place.key, mark)
    let key = BucketObject.temporaryKey(place.key)
    let temporary = BucketObject(
      client: destination.client, key: key, isExclusive: true, mark: mark)
    return try await temporary.ending(.init(kind: .copy, key: key)) {
      let sent = try await temporary.replace(nil, by: content()).sent
      guard let tag = try await RemoteObject.find(temporary)?.tag,
        try await isSame(temporary, tag)
      else { throw PushError.notKept("\(place)") }
      _ = try await write(old, kept: (key, tag, count), mark)
      if isVerifying, try await !isSame(object, nil) { throw PushError.notReplaced("\(place)") }
      return sent
    }
  }

  // MARK: Reading back

  private func checked(
    _ outcome: TransferReport.Outcome, sent: UInt64, _ mark: UploadLock
  ) async throws -> TransferReport {
    var report = TransferReport(outcome: outcome, count: count, transferred: sent)
    guard isVerifying else { return report }
    if try await !isSame(object, nil) {
      guard let found = try await RemoteObject.find(object) else {
        throw PushError.notKept("\(place)")
      }
      report.transferred += try await replace(found, mark)
      report.outcome = .healed
    }
    report.isVerified = true
    return report
  }

  /// Whether an object has the bytes of the archive, all of them and no others.
  private func isSame(_ object: BucketObject, _ tag: String?) async throws -> Bool {
    try await object.get(nil, tag: tag) { response in
      var offset: UInt64 = 0
      for try await piece in response.body {
        let end = offset + UInt64(piece.count)
        guard end <= count, piece == (try file.read(offset, piece.count)) else { return false }
        offset = end
        observer(Progress(stage: "reading back", done: offset, total: count))
      }
      return offset == count
    }
  }
}

/// What was done to bring a local or remote archive up to date.
package struct TransferReport: Sendable {
  /// What was done.
  package enum Outcome: String, CaseIterable, Sendable {
    /// Nothing: both are the same.
    case unchanged
    /// Nothing: it is a later state of the archive.
    case ahead
    /// It was created: there was none.
    case created
    /// What was new was appended.
    case appended
    /// Something else was replaced.
    case replaced
    /// Damaged bytes of the object were replaced.
    case healed
  }

  /// What was done.
  package var outcome: Outcome
  /// How many bytes the archive has there.
  package var count: UInt64
  /// How many bytes were sent or fetched.
  package var transferred: UInt64
  /// Whether all of it was read back and is right.
  package var isVerified = false
  /// What was done where the two differ in who may open the archive; nil where they do not.
  package var keys: Keys?

  /// Whose keys count: of two copies, those that were changed more often.
  package enum Keys: String, CaseIterable, Sendable {
    /// Those of the archive that was brought up to date, in the one copy or in both.
    case kept
    /// Those of the other one.
    case taken
  }
}

/// Why an archive was not pushed or pulled.
package enum PushError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Another process on this machine writes to the object.
  case busy(String)
  /// The object is neither an earlier nor a later state of the archive.
  case otherObject(String)
  /// The store would let two writers overwrite each other.
  case knowsNoConditions(String)
  /// The bytes read back differ from those sent.
  case notKept(String)
  /// The store says that it has replaced the object, and returns something else.
  case notReplaced(String)
  /// The file has bytes after what is committed.
  case unfinished(String)
  /// The object, which was put there whole, does not end as an archive does.
  case damagedObject(String)
  /// The file has whole bytes after what is committed that the archive at the address lacks.
  case unfinishedCopy(String, of: String)
  /// The file is damaged, and what is whole of it is not the beginning of the archive at the
  /// address.
  case damagedCopy(String, of: String)

  /// Whether what is read does not end as an archive does; it may be something else.
  package var isOfEnd: Bool {
    switch self {
    case .unfinished, .damagedObject: true
    default: false
    }
  }

  /// The message for people.
  package var description: String {
    switch self {
    case .busy(let name): "another process on this machine writes to \(name)"
    case .otherObject(let name): "\(name) is neither an earlier nor a later state of the archive"
    case .knowsNoConditions(let name):
      "the store of \(name) does not support conditional writes, so two writers could overwrite each other"
    case .notKept(let name): "\(name): the store returned different bytes from those sent"
    case .notReplaced(let name):
      "\(name): the store says that it replaced the object, and returns different bytes"
    case .unfinished(let name): "\(name) ends in an unfinished write"
    case .damagedObject(let name): "\(name): the end of the archive is damaged"
    case .unfinishedCopy(let name, let address):
      "\(name) ends in an unfinished write, and has data that \(address) lacks"
    case .damagedCopy(let name, _): "\(name) is damaged; it was not changed"
    }
  }
}

extension MappedFile {
  /// After how many bytes that were read their pages are released, so that no more of a large
  /// archive stays in memory than is on its way.
  private static let releaseInterval = 8 << 20

  /// A local archive, and how many bytes of it are committed.
  ///
  /// - Throws: `ArchiveError` if it is not one, or nothing is committed in it.
  static func committed(_ path: FilePath) throws -> (file: MappedFile, count: UInt64) {
    let file = try MappedFile(path)
    try file.refuseFurtherArchives()
    if let layer = file.layer {
      guard let count = layer.committedLength(of: file) else { throw ArchiveError(.noFooter) }
      return (file, count)
    }
    let generation = try ArchiveReader(file).generation
    guard generation.number > 0 else { throw ArchiveError(.noFooter) }
    return (file, generation.committedLength)
  }

  /// The last bytes before `end`, which tell an archive's generation from all others: they are its
  /// footer, or the last table of a sealed one; nil if none ends there.
  func ending(at end: UInt64) throws -> [UInt8]? {
    var length = min(end, UInt64(RemoteObject.endingLength))
    if let layer {
      guard let told = layer.endingLength(of: self, at: Int(end)) else { return nil }
      length = min(length, UInt64(told))
    }
    return try read(end - length, Int(length))
  }

  /// Copies some bytes.
  ///
  /// - Throws: `FetchFailure` if they are remote and could not be fetched.
  func read(_ offset: UInt64, _ count: Int) throws -> [UInt8] {
    let range = Int(offset)..<Int(offset) + count
    let bytes = withBytes(reading: [range]) { $0.extracting(range).array }
    try checkFetched()
    if range.lowerBound / Self.releaseInterval != range.upperBound / Self.releaseInterval {
      releasePages()
    }
    return bytes
  }
}
