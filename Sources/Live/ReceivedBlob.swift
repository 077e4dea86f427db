internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// A blob while it arrives: in memory as long as it is small and there is some, else in a file
/// without a name beside the archive.
///
/// 1. ``count`` bytes have come, and are kept; what breaks off goes on behind them if the server
///    can do that.
/// 2. What is in memory is hashed; what is in a file is when it is read.
///
/// One task uses it.
final class ReceivedBlob {
  /// What blobs need while they arrive.
  struct Surroundings: Sendable {
    /// The memory for those that are small.
    let memory: MemoryBudget
    /// The folder for files without a name.
    let folder: FilePath
    /// How long one may be, in bytes.
    let limit: Int
    /// Is told how many bytes have arrived; less than none when they have to come again.
    let arrived: @Sendable (Int) -> Void
  }

  /// What arrived.
  enum Content: Sendable {
    /// All of it, in memory, found to be what its CID names.
    case memory([[UInt8]])
    /// All of it, in a file.
    case file(TemporaryFile)
  }

  /// That a blob is longer than it may be.
  struct TooLong: Error, Equatable {
    let limit: Int
  }

  /// That another content came than the CID names.
  struct OtherContent: Error {
    let digest: SHA256Digest
  }

  /// The longest blob that is kept in memory.
  static let maximumInMemory = BlobLedger.largeBlob
  /// How long a blob may take that is kept in memory: one that is slower would keep it from others.
  private static let longestInMemory: Duration = .seconds(10)

  private let cid: CID
  private let surroundings: Surroundings
  private var pieces: [[UInt8]] = []
  private var hash = SHA256()
  private var file: TemporaryFile?
  private var canGoOn = false
  private var begin = ContinuousClock.now
  /// How many bytes have come.
  private(set) var count = 0

  /// A blob of which nothing has come.
  init(_ cid: CID, _ surroundings: Surroundings) {
    self.cid = cid
    self.surroundings = surroundings
  }

  deinit { letGoOfMemory() }

  /// How much of the blob need not be sent again.
  var offset: UInt64 { canGoOn ? UInt64(count) : 0 }

  /// Receives what an answer brings.
  ///
  /// - Throws: ``TooLong``; `TransportError` if it breaks off; ``BackupError`` if there is no room
  ///   for it.
  func receive(_ response: HTTPResponse) async throws {
    if response.offset == 0 { startOver() }
    canGoOn = response.status == 206 || response["accept-ranges"]?.lowercased() == "bytes"
    if let length = response.contentLength { try checkLength(adding: length) }
    for try await piece in response.body {
      try checkLength(adding: UInt64(piece.count))
      try await keep(piece)
      count += piece.count
      surroundings.arrived(piece.count)
    }
  }

  /// What arrived, when the answer has come to its end.
  ///
  /// - Throws: ``OtherContent``, of what was in memory.
  func content() throws -> Content {
    if let file { return .file(file) }
    let digest = hash.finish()
    guard cid.multihash.sha256 == digest else { throw OtherContent(digest: digest) }
    return .memory(pieces)
  }

  private func checkLength(adding length: UInt64) throws {
    let limit = surroundings.limit
    guard length <= UInt64(max(0, limit - count)) else { throw TooLong(limit: limit) }
  }

  private func keep(_ piece: [UInt8]) async throws {
    let isSmall = count + piece.count <= Self.maximumInMemory
    let isQuick = begin.duration(to: .now) < Self.longestInMemory || count == 0
    if file == nil, isSmall, isQuick, surroundings.memory.take(piece.count) {
      hash.update(piece.span)
      pieces.append(piece)
      return
    }
    let gathered = pieces + [piece]
    letGoOfMemory()
    let (file, folder) = (file, surroundings.folder)
    self.file = try await onOwnThread {
      let file = try file ?? TemporaryFile(in: folder)
      for piece in gathered { try file.write(piece.span) }
      return file
    }
  }

  private func startOver() {
    if count > 0 { surroundings.arrived(-count) }
    letGoOfMemory()
    hash = SHA256()
    file = nil
    count = 0
    begin = .now
  }

  private func letGoOfMemory() {
    surroundings.memory.giveBack(pieces.reduce(0) { $0 + $1.count })
    pieces = []
  }
}
