internal import Archive
internal import IPLD
internal import SystemPackage
internal import XRPC

/// Where one blob goes while it arrives: into memory if it is small, else straight to the end of the archive if that is free, else into a file
/// without a name beside the archive.
///
/// The transport's thread has it while a transfer is under way, and the task that asked for the blob has it before and after: never both.
final class BlobSink: ResponseSink, @unchecked Sendable {
  /// What arrived.
  enum Content {
    /// All of it, in memory.
    case memory([UInt8])
    /// All of it, in a file.
    case file(TemporaryFile)
    /// On its way into the archive, by what this task does.
    case streaming(Task<Void, any Error>)
  }

  /// What a blob needs to be received.
  struct Surroundings: Sendable {
    /// The memory for small blobs.
    let memory: MemoryBudget
    /// The folder for files without a name.
    let folder: FilePath
    /// Takes the end of the archive, if that may be had, and begins to append what the queue brings; nil if it may not.
    let claimTail: @Sendable (CID, PieceQueue) -> Task<Void, any Error>?
    /// Is told how many bytes have arrived; less than none when they have to come again.
    let arrived: @Sendable (Int) -> Void
  }

  /// What keeps a blob from being taken.
  enum Refusal: Error, Equatable {
    /// It is longer than it can be.
    case tooLong(limit: UInt64)
  }

  /// The longest blob that is kept in memory.
  static let maximumInMemory = 4 << 20
  /// The longest blob of which nobody says how long it is.
  static let maximumUnknown: UInt64 = 1 << 30

  private let cid: CID
  private let declaredSize: Int?
  private let limit: UInt64
  private let surroundings: Surroundings

  private var transfer: (any Transfer)?
  private var claim: MemoryBudget.Claim?
  private var bytes: [UInt8] = []
  private var file: TemporaryFile?
  private var stream: (pieces: PieceQueue, appending: Task<Void, any Error>)?
  /// How many bytes have arrived.
  private(set) var receivedCount: UInt64 = 0
  /// How long it is going to be, 4 MiB at most; 0 if nobody says.
  private var expectedLength = 0
  /// How many bytes memory was claimed for.
  private var capacity = 0
  private var canResume = false

  /// A sink for a blob.
  ///
  /// - Parameters:
  ///   - cid: which.
  ///   - declaredSize: how long it is, as a record says.
  ///   - surroundings: where it goes.
  init(_ cid: CID, declaredSize: Int?, _ surroundings: Surroundings) {
    self.cid = cid
    self.declaredSize = declaredSize
    self.surroundings = surroundings
    // Records are wrong about sizes now and then; what they say bounds what is read all the same.
    limit = declaredSize.map { max(UInt64(max($0, 0)) * 2, 16 << 20) } ?? Self.maximumUnknown
  }

  /// What need not be sent again, if the server can go on in the middle.
  var resumableOffset: UInt64 { canResume ? receivedCount : 0 }

  func begin(_ response: HTTPResponse, offset: UInt64, transfer: any Transfer) throws {
    self.transfer = transfer
    if offset == 0 { startOver() }
    let announced = response.contentLength
    canResume = response.status == 206 || response["accept-ranges"]?.lowercased() == "bytes"
    guard offset == 0 else { return }
    if let announced, announced > limit { throw Refusal.tooLong(limit: limit) }
    let expected = announced ?? UInt64(max(declaredSize ?? 0, 0))
    expectedLength = Int(min(expected, UInt64(Self.maximumInMemory)))
    guard expected > UInt64(Self.maximumInMemory) else {
      // It was longer a moment ago.
      abandonStream()
      return
    }
    if let announced {
      if stream == nil {
        let pieces = PieceQueue()
        stream = surroundings.claimTail(cid, pieces).map { (pieces, $0) }
      }
      stream?.pieces.begin(length: announced)
    } else {
      abandonStream()
    }
    if stream == nil { file = try TemporaryFile(in: surroundings.folder) }
  }

  func take(_ bytes: Span<UInt8>) throws -> Flow {
    guard let transfer else { return .proceed }
    guard receivedCount + UInt64(bytes.count) <= limit else { throw Refusal.tooLong(limit: limit) }
    if let stream {
      guard try stream.pieces.put(bytes, of: transfer) == .proceed else { return .pause }
    } else if let file {
      try file.write(bytes)
    } else {
      guard hasMemory(for: transfer) else { return .pause }
      if self.bytes.count + bytes.count <= capacity {
        // An array that grows by itself would be up to twice as long as what was claimed.
        self.bytes.reserveCapacity(capacity)
        self.bytes.append(bytes)
      } else {
        try moveToFile().write(bytes)
      }
    }
    receivedCount += UInt64(bytes.count)
    surroundings.arrived(bytes.count)
    return .proceed
  }

  /// Lets go of memory, and of the end of the archive unless it can go on there.
  ///
  /// Whoever has a claim that was granted must not wait for a place among the transfers: those who have one may be waiting for memory.
  func suspend() {
    transfer = nil
    if canResume, receivedCount > 0 {
      guard stream == nil, file == nil else { return }
      do {
        _ = try moveToFile()
        return
      } catch {
        // Then it begins again, and says what is wrong with the disk if it comes to that.
      }
    }
    abandonStream()
    startOver()
  }

  /// What arrived, once the transfer has come to its end.
  func content() throws -> Content {
    if let stream {
      stream.pieces.end()
      return .streaming(stream.appending)
    }
    if let file { return .file(file) }
    return .memory(bytes)
  }

  /// Lets go of memory and of the end of the archive, however the transfer ended.
  func close() {
    abandonStream()
    bytes = []
    file = nil
    // Whoever gets the memory next may begin to fill it at once.
    releaseMemory()
  }

  private func hasMemory(for transfer: any Transfer) -> Bool {
    if let claim { return surroundings.memory.isGranted(claim) }
    // Of one of which nobody says anything, anything may come.
    capacity = expectedLength > 0 ? max(expectedLength, 1 << 16) : Self.maximumInMemory
    let claim = surroundings.memory.claim(capacity, for: transfer)
    self.claim = claim
    return surroundings.memory.isGranted(claim)
  }

  /// Makes room for what turns out longer than anybody said.
  private func moveToFile() throws -> TemporaryFile {
    let file = try TemporaryFile(in: surroundings.folder)
    let gathered = bytes
    try file.write(gathered.span)
    bytes = []
    self.file = file
    releaseMemory()
    return file
  }

  private func abandonStream() {
    stream?.pieces.abandon()
    stream = nil
  }

  private func startOver() {
    if receivedCount > 0 { surroundings.arrived(-Int(receivedCount)) }
    receivedCount = 0
    bytes = []
    file = nil
    // Another transfer is to be resumed when memory is granted, and may be of another length.
    releaseMemory()
  }

  private func releaseMemory() {
    if let claim { surroundings.memory.release(claim) }
    claim = nil
  }
}
