internal import Archive
internal import Files
internal import Synchronization
internal import SystemPackage
internal import XRPC

/// An object that lies on a server, read part by part.
///
/// 1. Every part is of the same content: of the one that was there when it was opened, or of one
///    that goes on where that ended (``regain(_:)``).
/// 2. What the server says of a part is checked before its bytes are taken; an answer that is
///    shorter than it says is asked for again.
final class FarObject: ByteSource {
  private let server: any RangeServer
  /// How many bytes it has.
  let count: UInt64
  /// Its last bytes, by which another content is known to go on where it ended.
  private let ending: [UInt8]
  private let version: Mutex<ContentVersion>

  /// How many bytes of the end are asked for first: the footer, and with it the index of an archive
  /// that is not large.
  private static let firstPart = 256 << 10
  /// How many parts are asked for at a time.
  private static let parallelParts = 8

  /// The object whose end is known.
  init(_ server: any RangeServer, _ head: FarHead) {
    (self.server, count, ending) = (server, head.count, head.isWhole ? [] : head.ending)
    version = Mutex(head.version)
  }

  /// Opens an object: asks for its end, which says how long it is.
  ///
  /// A server that answers with the whole is read to its end.
  ///
  /// - Parameter server: the server, asked for this object.
  /// - Throws: ``FetchFailure``; ``BackupError`` if there is no room for what comes.
  /// - Returns: the file, of which the end, or all, is here.
  static func open(_ server: any RangeServer) async throws -> FetchedFile {
    let spool = try TemporaryFile()
    let head = try await FarHead.read(server, length: firstPart, spool: spool)
    let file = try FetchedFile(
      FarObject(server, head), count: Int(head.count), scratch: spool.duplicate())
    if head.isWhole {
      file.keepAll()
    } else {
      try file.keep(head.received, at: Int(head.count) - head.received.count)
    }
    return file
  }

  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void
  ) throws {
    try TransferThread.shared.wait { [self] in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, range) in ranges.enumerated() {
          if number >= Self.parallelParts { try await group.next() }
          group.addTask { try await self.fetch(range, take) }
        }
        try await group.waitForAll()
      }
    }
  }

  private func fetch(
    _ range: Range<UInt64>, _ take: @Sendable (UInt64, [UInt8]) throws -> Void
  ) async throws {
    do {
      try await fetchOnce(range, take)
    } catch let failure as FetchFailure where failure.kind == .replaced {
      guard try await regain() else { throw failure }
      try await fetchOnce(range, take)
    }
  }

  private func fetchOnce(
    _ range: Range<UInt64>, _ take: @Sendable (UInt64, [UInt8]) throws -> Void
  ) async throws {
    let known = version.withLock { $0 }
    let text = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    try await server.get(text, tag: known.tag) { response in
      guard known.agrees(with: ContentVersion(response)) else { throw replaced }
      let start = try start(of: response, for: range)
      // What comes before is passed over; what comes behind is not waited for.
      var place = start
      for try await piece in response.body {
        let end = place + UInt64(piece.count)
        let wanted = range.clamped(to: place..<end)
        if !wanted.isEmpty {
          let part = piece[Int(wanted.lowerBound - place)..<Int(wanted.upperBound - place)]
          try take(wanted.lowerBound, part.count == piece.count ? piece : Array(part))
        }
        place = end
        if place >= range.upperBound { break }
      }
      guard place >= range.upperBound else {
        throw server.cutOff(Int(place - start), range.count)
      }
    }
  }

  /// Where the bytes of an answer begin.
  private func start(of response: HTTPResponse, for range: Range<UInt64>) throws -> UInt64 {
    try server.refuseEncoded(response)
    guard let text = response["content-range"] else {
      if response.status == 200 { return 0 }
      throw FetchFailure(.refused, "\(server.name): the server does not say which part it sends")
    }
    guard let part = ContentRange(text), part.first == range.lowerBound,
      part.last == range.upperBound - 1
    else { throw server.otherPart("than it was asked for") }
    // Where nothing names the content, its length does.
    if let total = part.total,
      total < count || version.withLock({ $0.tag == nil }) && total != count
    {
      throw replaced
    }
    return part.first
  }

  private var replaced: FetchFailure {
    FetchFailure(.replaced, "\(server.name): it was replaced while it was read; read it again")
  }

  /// Whether what is there now goes on where this ended, as an archive does to which a backup was
  /// added: then it is what is read from now on.
  ///
  /// The last bytes of an archive are its footer, which holds checksums of all that lies before.
  private func regain() async throws -> Bool {
    guard !ending.isEmpty else { return false }
    let range = count - UInt64(ending.count)..<count
    do {
      let (found, now) = try await server.part(range, tag: nil)
      guard found == ending else { return false }
      version.withLock { $0 = now }
      return true
    } catch let failure as FetchFailure where failure.kind == .refused {
      return false
    }
  }
}
