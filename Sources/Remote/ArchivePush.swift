internal import Archive
package import Files
internal import IPLD
package import ObjectStore
package import SystemPackage
package import XRPC

/// Brings an object in a bucket up to date with an archive that lies here, by sending what it lacks.
///
/// 1. The object is the old one or the new one at every moment, never a part of either.
/// 2. An object that is not an earlier state of the archive is left alone, unless it is to be
///    replaced; then the archive is sent under another key, read back, and put in its place by the
///    store.
package struct ArchivePush: Sendable {
  /// What is done.
  package struct Options: Sendable {
    /// Whether nothing else writes to the object, so that a store that knows no conditions will do.
    package var isExclusive = false
    /// Whether the object is read back and compared, all of it, and what is damaged replaced.
    package var isVerifying = false
    /// Whether an object that is something else is replaced.
    package var replaces = false
    /// The folder for what is kept between runs.
    package var cache: FilePath

    /// Options.
    package init(cache: FilePath) { self.cache = cache }
  }

  private let options: Options
  private let place: BucketAddress
  private let client: BucketClient
  private let bytes: CommittedBytes
  private let observer: @Sendable (Progress) -> Void

  /// How many times another writer may be faster.
  private static let maximumRaces = 5

  /// A push.
  ///
  /// - Parameters:
  ///   - path: the archive.
  ///   - place: the object.
  ///   - store: how the store is asked.
  ///   - network: what the user set about the network.
  ///   - options: what is done.
  ///   - observer: is told how far it has come.
  /// - Throws: `ArchiveError` if the file is no archive; `StoreError`.
  package init(
    _ path: FilePath, to place: BucketAddress, _ store: StoreOptions, network: NetworkOptions,
    options: Options, observer: @escaping @Sendable (Progress) -> Void = { _ in }
  ) throws {
    self.options = options
    self.place = place
    self.observer = observer
    bytes = try CommittedBytes(path)
    client = try BucketClient(place.bucket, store, network: network)
  }

  /// Pushes.
  ///
  /// - Throws: ``PushError``; `FetchFailure`, `StoreError`, `TransportError`; ``BackupError``.
  package func run() async throws -> TransferReport {
    guard let mark = try UploadMark("\(place)", in: options.cache) else {
      throw PushError.busy("\(place)")
    }
    if mark.wasLeft { try await writer(place.key).giveUpLeftovers() }
    var races = 0
    while true {
      do {
        let report = try await push()
        mark.remove()
        return report
      } catch let error as StoreError where error.kind == .conditionFailed {
        // Another writer was faster: what there is now may be gone on with, or not.
        races += 1
        guard races < Self.maximumRaces else { throw error }
      }
    }
  }

  private var server: BucketObject { BucketObject(client: client, key: place.key) }

  private func push() async throws -> TransferReport {
    guard let head = try await FarHead.of(server) else {
      try await writer(place.key).requireConditionalWrites()
      let written = try await writer(place.key).replace(nil, by: content())
      return try await checked(
        TransferReport(outcome: .created, count: bytes.count, transferred: written.sent))
    }
    if head.count == bytes.count, head.ending == (try bytes.ending(at: head.count)) {
      return try await checked(
        TransferReport(outcome: .unchanged, count: head.count, transferred: 0))
    }
    if head.count < bytes.count, head.count > 0,
      head.ending == (try bytes.ending(at: head.count)), let tag = head.tag
    {
      try await writer(place.key).requireConditionalWrites()
      var content = content()
      content.kept = (place.key, tag, head.count)
      let written = try await writer(place.key).replace(tag, by: content)
      return try await checked(
        TransferReport(outcome: .appended, count: bytes.count, transferred: written.sent))
    }
    if try await isAhead(head) {
      return TransferReport(outcome: .ahead, count: head.count, transferred: 0)
    }
    guard options.replaces else { throw PushError.otherObject("\(place)") }
    let sent = try await replace(head)
    return TransferReport(
      outcome: .replaced, count: bytes.count, transferred: sent, isVerified: true)
  }

  private func content() -> BucketWriter.Content {
    let (bytes, observer) = (bytes, observer)
    return BucketWriter.Content(count: bytes.count, kept: nil) { offset, count in
      observer(Progress(stage: "sending", done: offset, total: bytes.count))
      return try bytes.read(offset, count)
    }
  }

  private func writer(_ key: String) -> BucketWriter {
    BucketWriter(client: client, key: key, isExclusive: options.isExclusive)
  }

  /// Whether the object begins with the archive and goes on.
  private func isAhead(_ head: FarHead) async throws -> Bool {
    guard head.count > bytes.count else { return false }
    let ending = try bytes.ending(at: bytes.count)
    let range = bytes.count - UInt64(ending.count)..<bytes.count
    return try await head.bytes(range, from: server) == ending
  }

  // MARK: Replacing

  private var temporaryKey: String { BucketWriter.temporaryKey(place.key) }

  /// Sends everything under another key, reads it back, and has the store put it in place.
  private func replace(_ old: FarHead) async throws -> UInt64 {
    try await writer(place.key).requireConditionalWrites()
    let sent: UInt64
    let writer = BucketWriter(client: client, key: temporaryKey, isExclusive: true)
    sent = try await writer.replace(nil, by: content()).sent
    guard let new = try await client.head(of: temporaryKey) else {
      throw PushError.notKept("\(place)")
    }
    let copy = BucketObject(client: client, key: temporaryKey)
    guard try await firstDifference(copy, new.tag) == nil else {
      try await client.remove(temporaryKey)
      throw PushError.notKept("\(place)")
    }
    var content = content()
    content.kept = (temporaryKey, new.tag, bytes.count)
    _ = try await self.writer(place.key).replace(old.tag, by: content)
    try await client.remove(temporaryKey)
    return sent
  }

  // MARK: Reading back

  private func checked(_ report: TransferReport) async throws -> TransferReport {
    guard options.isVerifying else { return report }
    var report = report
    if try await firstDifference(server, nil) != nil {
      guard let head = try await FarHead.of(server) else { throw PushError.notKept("\(place)") }
      report.transferred += try await replace(head)
      report.outcome = .healed
    }
    report.isVerified = true
    return report
  }

  /// Where an object differs first from the archive; nil if it does not.
  private func firstDifference(_ object: BucketObject, _ tag: String?) async throws -> UInt64? {
    try await object.get(nil, tag: tag) { response in
      var offset: UInt64 = 0
      for try await piece in response.body {
        let end = offset + UInt64(piece.count)
        guard end <= bytes.count, piece == (try bytes.read(offset, piece.count)) else {
          return offset
        }
        offset = end
        observer(Progress(stage: "reading back", done: offset, total: bytes.count))
      }
      return offset == bytes.count ? nil : offset
    }
  }
}

/// What was done to bring an archive here or elsewhere up to date.
package struct TransferReport: Sendable {
  /// What was done.
  package enum Outcome: String, Sendable {
    /// It is the same already.
    case unchanged
    /// It is a later state of the archive.
    case ahead
    /// There was none.
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
}

/// Why an archive was not pushed or pulled.
package enum PushError: Error, Equatable, Sendable, CustomStringConvertible {
  /// Another process on this machine writes to the object.
  case busy(String)
  /// What is there is no earlier or later state of the archive.
  case otherObject(String)
  /// The store would let two writers overwrite each other.
  case knowsNoConditions(String)
  /// What was sent and read back is not what was sent.
  case notKept(String)
  /// The file has bytes behind what is committed.
  case unfinished(String)

  /// What a person reads.
  package var description: String {
    switch self {
    case .busy(let name): "another process on this machine writes to \(name)"
    case .otherObject(let name): "\(name) is neither an earlier nor a later state of the archive"
    case .knowsNoConditions(let name):
      "the store of \(name) takes no notice of conditions, so that two writers could overwrite each other"
    case .notKept(let name): "\(name): what the store gives back is not what was sent"
    case .unfinished(let name): "\(name) ends in a write that was not finished"
    }
  }
}
