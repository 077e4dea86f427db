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
  private let version: Mutex<Version>

  /// By what a server's answers show that they are of one content.
  private struct Version: Equatable {
    /// What names the content.
    var tag: String?
    /// When it was written.
    var date: String?

    init(tag: String?) { self.tag = tag }

    init(_ response: HTTPResponse) {
      tag = response["etag"]
      date = response["last-modified"]
    }

    /// Whether an answer is of the same content, as far as it says.
    func agrees(with other: Version) -> Bool {
      if let tag, let its = other.tag { return tag == its }
      if let date, let its = other.date { return date == its }
      return true
    }
  }

  /// How many bytes of the end are asked for first: the footer, and with it the index of an archive
  /// that is not large.
  private static let firstPart = 256 << 10
  /// How many of the last bytes are kept: more than any footer has.
  private static let endingLength = 4 << 10
  /// How many parts are asked for at a time.
  private static let parallelParts = 8

  private init(_ server: any RangeServer, count: UInt64, ending: [UInt8], _ version: Version) {
    (self.server, self.count, self.ending) = (server, count, ending)
    self.version = Mutex(version)
  }

  /// The object whose end is known.
  convenience init(_ server: any RangeServer, _ head: FarHead) {
    self.init(server, count: head.count, ending: head.ending, Version(tag: head.tag))
  }

  /// Opens an object: asks for its end, which says how long it is.
  ///
  /// A server that answers with the whole is read to its end.
  ///
  /// - Parameter server: the server, asked for this object.
  /// - Throws: ``FetchFailure``; ``BackupError`` if there is no room for what comes.
  /// - Returns: the file, of which the end, or all, is here; and what names its content, if
  ///   the server says.
  static func open(_ server: any RangeServer) async throws -> (file: FetchedFile, tag: String?) {
    let scratch = try TemporaryFile()
    let range = "bytes=-\(firstPart)"
    do {
      return try await server.get(range, tag: nil) { response in
        try await opened(response, server, scratch)
      }
    } catch let failure as FetchFailure where failure.status == 416 {
      // Nothing lies before the end of an empty file; some servers say so of any short one.
      return try await server.get(nil, tag: nil) { response in
        try await opened(response, server, scratch)
      }
    }
  }

  private static func opened(
    _ response: HTTPResponse, _ server: any RangeServer, _ scratch: TemporaryFile
  ) async throws -> (FetchedFile, String?) {
    try refuseEncoded(response, server.name)
    let version = Version(response)
    guard let text = response["content-range"] else {
      guard response.status == 200 else {
        throw FetchFailure(
          .refused, "\(server.name): the server does not say which part it sends")
      }
      // It knows no parts: all of it comes.
      try scratch.truncate(to: 0)
      for try await piece in response.body { try scratch.write(piece.span) }
      try scratch.flush()
      let file = try FetchedFile(
        FarObject(server, count: UInt64(scratch.count), ending: [], version),
        count: scratch.count, scratch: scratch.duplicate())
      file.keepAll()
      return (file, version.tag)
    }
    guard let part = ContentRange(text), let total = part.total, part.last == total - 1,
      total <= UInt64(Int.max), part.last - part.first < UInt64(2 * firstPart)
    else {
      throw FetchFailure(
        .refused, "\(server.name): the server sends another part than its end")
    }
    let length = Int(part.last - part.first + 1)
    let bytes = try await response.body.collect(upTo: length, of: server.name)
    guard bytes.count == length else { throw cutOff(bytes.count, length, server.name) }
    let object = FarObject(
      server, count: total, ending: Array(bytes.suffix(endingLength)), version)
    let file = try FetchedFile(object, count: Int(total), scratch: try TemporaryFile().duplicate())
    try file.keep(bytes, at: Int(part.first))
    return (file, version.tag)
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
      guard known.agrees(with: Version(response)) else { throw replaced }
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
        throw Self.cutOff(Int(place - start), range.count, server.name)
      }
    }
  }

  /// Where the bytes of an answer begin.
  private func start(of response: HTTPResponse, for range: Range<UInt64>) throws -> UInt64 {
    try Self.refuseEncoded(response, server.name)
    guard let text = response["content-range"] else {
      if response.status == 200 { return 0 }
      throw FetchFailure(.refused, "\(server.name): the server does not say which part it sends")
    }
    guard let part = ContentRange(text), part.first == range.lowerBound,
      part.last == range.upperBound - 1
    else {
      throw FetchFailure(
        .refused, "\(server.name): the server sends another part than it was asked for")
    }
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
    let found = Found()
    let now = try await server.get(
      "bytes=\(range.lowerBound)-\(range.upperBound - 1)", tag: nil
    ) { response -> Version? in
      guard let text = response["content-range"], let part = ContentRange(text),
        part.first == range.lowerBound, part.last == range.upperBound - 1
      else { return nil }
      found.bytes = try await response.body.collect(upTo: ending.count, of: server.name)
      return Version(response)
    }
    guard let now, found.bytes == ending else { return false }
    version.withLock { $0 = now }
    return true
  }

  private final class Found { var bytes: [UInt8] = [] }

  private static func refuseEncoded(_ response: HTTPResponse, _ name: String) throws {
    let encoding = response["content-encoding"]?.lowercased() ?? "identity"
    guard encoding == "identity" || encoding == "aws-chunked" else {
      throw FetchFailure(
        .refused, "\(name): the server sends it compressed once more (\(Excerpt.of(encoding)))")
    }
  }

  private static func cutOff(_ received: Int, _ expected: Int, _ name: String) -> TransportError {
    TransportError(.cutOff("\(received) of \(expected) bytes came"), url: name)
  }
}
