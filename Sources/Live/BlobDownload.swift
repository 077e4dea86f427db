internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// What downloads of blobs share.
struct DownloadContext: Sendable {
  /// The memory for small blobs.
  let memory: MemoryBudget
  /// The folder for files without a name.
  let folder: FilePath
  /// The longest blob, in bytes.
  let limit: Int
  /// Called with the number of bytes that arrived; negative when they have to come again.
  let arrived: @Sendable (Int) -> Void
}

/// One blob while it arrives: in memory as long as it is small and there is memory left, else in a
/// file without a name beside the archive.
///
/// 1. ``count`` bytes have come and are kept; an interrupted transfer resumes behind them if the
///    server can do that.
/// 2. Bytes in memory are hashed as they come; those in a file when they are read.
///
/// One task uses it.
final class BlobDownload {
  /// The longest blob that is kept in memory.
  static let maximumInMemory = BlobLedger.largeBlob
  /// How long a blob in memory may take: a slower one would keep the memory from others.
  private static let longestInMemory: Duration = .seconds(10)

  private let cid: CID
  private let context: DownloadContext
  private var pieces: [[UInt8]] = []
  private var hash = SHA256()
  private var file: TemporaryFile?
  private var canResume = false
  private var begin = ContinuousClock.now
  /// How many bytes have come.
  private(set) var count = 0
  /// The hash of the bytes in memory, if they are not those that the CID names.
  private(set) var otherDigest: SHA256Digest?

  /// A blob of which nothing has come.
  init(_ cid: CID, _ context: DownloadContext) { (self.cid, self.context) = (cid, context) }

  deinit { releaseMemory() }

  /// How much of the blob need not be sent again.
  var offset: UInt64 { canResume ? UInt64(count) : 0 }

  /// Fetches the blob.
  ///
  /// - Throws: what the client throws; as ``receive(_:)`` and ``content()`` do.
  func fetch(from client: XRPCClient, of did: DID, attempts: Int? = nil) async throws
    -> DownloadedFile
  {
    try await client.stream(
      GetBlob(did: did, cid: cid), attempts: attempts, from: { offset }, receive: receive)
    return try content()
  }

  /// Receives an answer: all of the blob, or the rest of it.
  ///
  /// - Throws: ``BackupError/blobTooLarge(limit:)``, or another ``BackupError`` if there is no room;
  ///   `TransportError` if the answer breaks off.
  func receive(_ response: HTTPResponse) async throws {
    if response.offset == 0 { startOver() }
    canResume = response.status == 206 || response["accept-ranges"]?.lowercased() == "bytes"
    if let length = response.contentLength { try checkLength(adding: length) }
    for try await piece in response.body {
      try checkLength(adding: UInt64(piece.count))
      try await keep(piece)
      count += piece.count
      context.arrived(piece.count)
    }
  }

  /// The blob, when the answer has come to its end.
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
    guard length <= UInt64(max(0, context.limit - count)) else {
      throw BackupError.blobTooLarge(limit: context.limit)
    }
  }

  private func keep(_ piece: [UInt8]) async throws {
    let isSmall = count + piece.count <= Self.maximumInMemory
    let isQuick = begin.duration(to: .now) < Self.longestInMemory || count == 0
    if file == nil, isSmall, isQuick, context.memory.take(piece.count) {
      hash.update(piece.span)
      pieces.append(piece)
      return
    }
    let gathered = pieces + [piece]
    releaseMemory()
    self.file = try await onOwnThread { [file, folder = context.folder] in
      let file = try file ?? TemporaryFile(in: folder)
      for piece in gathered { try file.write(piece.span) }
      return file
    }
  }

  private func startOver() {
    if count > 0 { context.arrived(-count) }
    releaseMemory()
    hash = SHA256()
    (file, count, begin) = (nil, 0, .now)
  }

  private func releaseMemory() {
    context.memory.giveBack(pieces.reduce(0) { $0 + $1.count })
    pieces = []
  }
}
