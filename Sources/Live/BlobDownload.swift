internal import ATProtocol
internal import Archive
package import Files
internal import HTTP
internal import IPLD
internal import Snapshots
internal import Synchronization
package import SystemPackage
internal import XRPC

/// One blob while it arrives: in memory as long as it is small and there is memory left, else in a
/// file beside the archive.
///
/// 1. ``count`` bytes have arrived and are kept; an interrupted transfer resumes after them if the
///    server can do that.
/// 2. Bytes in memory are hashed as they come; those in a file when they are read.
/// 3. The file has a name, under which the next run finds it, if the transfer can be resumed and
///    `pieces` may lie there; else it has none.
///
/// One task uses it.
final class BlobDownload {
  /// The longest blob that is kept in memory.
  static let maximumInMemory = BlobLedger.largeBlob
  /// How long a blob in memory may take: a slower one would hold memory that others need.
  private static let longestInMemory: Duration = .seconds(10)

  private let cid: CID
  private let memory: MemoryBudget
  private let folder: FilePath
  private let limit: Int
  private let kept: BlobPieces?
  private let arrived: (Int) -> Void
  private var pieces: [[UInt8]] = []
  private var hash = SHA256()
  private var file: TemporaryFile?
  private var canResume = false
  private var begin = ContinuousClock.now
  /// How many bytes have arrived.
  private(set) var count = 0
  /// The hash of the bytes in memory, if it does not match the CID.
  private(set) var otherDigest: SHA256Digest?

  /// A blob of which nothing has arrived.
  ///
  /// - Parameters:
  ///   - cid: which.
  ///   - memory: the memory for small blobs.
  ///   - folder: the folder for files without a name.
  ///   - limit: how long it may be, in bytes.
  ///   - pieces: where a run leaves what it has of a blob; nil if nothing may be left.
  ///   - arrived: called with the number of bytes that arrived; negative when they have to come
  ///     again.
  init(
    _ cid: CID, memory: MemoryBudget, folder: FilePath, limit: Int, pieces: BlobPieces? = nil,
    arrived: @escaping (Int) -> Void = { _ in }
  ) {
    (self.cid, self.memory, self.folder) = (cid, memory, folder)
    (self.limit, self.kept, self.arrived) = (limit, pieces, arrived)
  }

  deinit { releaseMemory() }

  /// How much of the blob need not be sent again.
  var offset: UInt64 { canResume ? UInt64(count) : 0 }

  /// Fetches the blob, or what an earlier run does not have of it.
  ///
  /// - Throws: what the client throws; as ``receive(_:)`` and ``content()`` do. What has arrived by
  ///   then is left to the next run if that can continue it.
  func fetch(from client: XRPCClient, of did: DID, attempts: Int? = nil) async throws
    -> DownloadedFile
  {
    if try await continueLeft() { return try content() }
    do {
      try await client.stream(
        .getBlob(cid, of: did), attempts: attempts, from: { offset }, receive: receive)
    } catch {
      try await leaveToNextRun()
      throw error
    }
    return try content()
  }

  /// Continues with what an earlier run has left; returns whether that is all of the blob.
  private func continueLeft() async throws -> Bool {
    guard count == 0, let left = try kept?.piece(of: cid) else { return false }
    guard left.count > 0, left.count <= limit else { return false }
    (file, count, canResume) = (left, left.count, true)
    arrived(count)
    return try await onOwnQueue { [cid] in
      var hash = SHA256()
      try left.read(pieces: 1 << 20) { hash.update($0) }
      return cid.multihash.sha256 == hash.finish()
    }
  }

  /// Leaves what has arrived to the next run, if that can continue it and it is not little.
  private func leaveToNextRun() async throws {
    guard let kept else { return }
    guard canResume, count >= BlobPieces.leastCount else { return try kept.remove(cid) }
    if file == nil { try await spill([]) }
    try file?.flush()
  }

  /// Removes what the next run would continue: the blob has come, or something else came.
  func forget() throws { try kept?.remove(cid) }

  /// Receives an answer: all of the blob, or the rest of it.
  ///
  /// - Throws: ``BackupError/blobTooLarge(limit:)``, or another ``BackupError`` if there is no
  ///   room; `TransportError` if the answer breaks off.
  func receive(_ response: HTTPResponse) async throws {
    if response.offset == 0 { startOver() }
    canResume = response.status == 206 || response["accept-ranges"]?.lowercased() == "bytes"
    if let length = response.contentLength { try checkLength(adding: length) }
    for try await piece in response.body {
      try checkLength(adding: UInt64(piece.count))
      try await keep(piece)
      count += piece.count
      arrived(piece.count)
    }
  }

  /// The blob, when the answer is complete.
  ///
  /// - Throws: `ArchiveError` with the reason `contentMismatch`, if it is in memory and is not what
  ///   the CID names.
  func content() throws -> DownloadedFile {
    if let file { return .file(file) }
    let digest = hash.finish()
    guard cid.multihash.sha256 == digest else {
      otherDigest = digest
      throw ArchiveError(.contentMismatch(cid))
    }
    return .memory(pieces)
  }

  private func checkLength(adding length: UInt64) throws {
    guard length <= UInt64(max(0, limit - count)) else {
      throw BackupError.blobTooLarge(limit: limit)
    }
  }

  private func keep(_ piece: [UInt8]) async throws {
    let isSmall = count + piece.count <= Self.maximumInMemory
    let isQuick = begin.duration(to: .now) < Self.longestInMemory || count == 0
    if file == nil, isSmall, isQuick, memory.take(piece.count) {
      hash.update(piece.span)
      pieces.append(piece)
      return
    }
    try await spill([piece])
  }

  /// Moves what is in memory to the file, and appends this to it.
  private func spill(_ new: [[UInt8]]) async throws {
    let gathered = pieces + new
    releaseMemory()
    let kept = canResume ? kept : nil
    self.file = try await onOwnQueue { [file, folder, cid] in
      let file = try file ?? kept?.begin(cid) ?? TemporaryFile(in: folder)
      for piece in gathered { try file.write(piece.span) }
      return file
    }
  }

  private func startOver() {
    if count > 0 { arrived(-count) }
    releaseMemory()
    hash = SHA256()
    (file, count, begin) = (nil, 0, .now)
  }

  private func releaseMemory() {
    memory.giveBack(pieces.reduce(0) { $0 + $1.count })
    pieces = []
  }
}

/// Bytes that were fetched: in memory, or in a file.
package enum DownloadedFile: Sendable {
  /// The bytes, in pieces.
  case memory([[UInt8]])
  /// A file that has all of them.
  case file(TemporaryFile)

  /// Calls `body` with the bytes, piece by piece.
  ///
  /// - Throws: ``BackupError`` if the file cannot be read; what `body` throws.
  package func read(_ body: (Span<UInt8>) throws -> Void) throws {
    switch self {
    case .memory(let pieces): for piece in pieces { try body(piece.span) }
    case .file(let file): try file.read(pieces: 1 << 20, body)
    }
  }

  /// Writes them to a file that has its name only when all of it is there.
  ///
  /// - Throws: ``BackupError`` and `ArchiveError` if the file cannot be written, or is there
  ///   already and is not to be replaced.
  package func save(to path: FilePath, replacing: Bool) throws {
    try AtomicFile.save(to: path, replacing: replacing) { try read($0) }
  }
}

/// The memory that all transfers together may fill with blobs that are not in an archive yet.
///
/// It is taken as bytes come. A blob that gets none continues in a file, so that none waits for
/// another.
package final class MemoryBudget: Sendable {
  private let available: Atomic<Int>

  /// A budget of this many bytes.
  package init(_ size: Int) { available = Atomic(size) }

  /// Takes this many bytes, or none.
  func take(_ count: Int) -> Bool {
    if available.subtract(count, ordering: .relaxed).newValue >= 0 { return true }
    giveBack(count)
    return false
  }

  /// Gives bytes back.
  func giveBack(_ count: Int) { available.add(count, ordering: .relaxed) }
}
