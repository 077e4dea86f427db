internal import Archive
internal import Files
internal import HTTP
internal import IPLD
internal import Synchronization

/// An object on a server, read part by part: its end first, in one request, then what is needed.
///
/// 1. Every part is of the same content: of that which was there when it was opened, or of one
///    that continues where that ended (``regain()``).
/// 2. What the server says of a part is checked before its bytes are used; an answer that breaks
///    off is resumed there.
/// 3. What was put there whole and does not end as an archive does is damaged at its end; it is no
///    write that was not finished.
final class RemoteObject: ByteSource {
  private let server: any RangeReader
  /// How many bytes it has.
  let count: UInt64
  /// The bytes of the end that came first.
  let received: [UInt8]
  /// Whether the server does not support ranges, so that it sent everything.
  private let isWhole: Bool
  private let version: Mutex<ContentVersion>

  /// How many of the last bytes tell it from all others: more than a footer has.
  static let endingLength = 4 << 10
  /// How many bytes of the end are requested first: the footer, and with it the index of an archive
  /// that is not large.
  static let firstPart = 128 << 10
  /// How many parts are requested at a time.
  private static let parallelParts = 8
  /// The maximum length of a part.
  private static let longestPart: UInt64 = 16 << 20
  /// The least progress of a broken transfer that is resumed; less counts as a failure, of which
  /// only a few are allowed.
  private static let leastProgress: UInt64 = 64 << 10

  /// An object of which this is known; with nothing known, one that is not there.
  init(
    _ server: any RangeReader, count: UInt64 = 0, received: [UInt8] = [], isWhole: Bool = false,
    _ version: ContentVersion = ContentVersion()
  ) {
    (self.server, self.count, self.received) = (server, count, received)
    self.isWhole = isWhole
    self.version = Mutex(version)
  }

  /// Its last bytes, by which another content is known to continue where it ended.
  var ending: [UInt8] { Array(received.suffix(Self.endingLength)) }

  /// Whether its last bytes are those of an archive; one in which nothing is may become one.
  var endsAsArchive: Bool {
    count == 0 || Footer.length(atEndOf: ending, count: count) != nil
      || StorageLayers.layer(knowingEnd: ending.span) != nil
  }

  /// The content's identifier in conditions; nil if the server sends none.
  var tag: String? { version.withLock { $0.tag } }

  /// The content's identifier, by which it is replaced or copied.
  ///
  /// - Throws: `FetchFailure` if the store gives none, or one that no condition can name.
  func requireTag() throws -> String {
    if let tag { return tag }
    let isWeak = version.withLock { $0.isWeak }
    throw FetchFailure(
      .refused,
      "\(server.name): the store gives \(isWeak ? "only a weak ETag" : "no ETag"), so it cannot be replaced safely"
    )
  }

  /// Requests the last bytes of an object, this many; nil if there is none.
  ///
  /// - Throws: `FetchFailure`.
  static func find(_ server: any RangeReader, length: Int = endingLength) async throws
    -> RemoteObject?
  {
    try await FetchFailure.unlessAbsent { try await find(server, length: length, spool: nil) }
  }

  /// Opens an object: requests its end, which shows how long it is.
  ///
  /// A server that answers with the whole is read to its end.
  ///
  /// - Parameter server: the server, asked for this object.
  /// - Throws: ``FetchFailure``; ``BackupError`` if there is no room for what arrives.
  /// - Returns: the file, of which the end, or everything, has been fetched.
  static func open(_ server: any RangeReader) async throws -> MappedFile {
    let spool = try TemporaryFile()
    let object = try await find(server, length: firstPart, spool: spool)
    let file = try FetchedFile(
      object, count: Int(object.count), scratch: FileScratch(spool.duplicate()))
    if object.isWhole {
      file.keepAll()
    } else {
      try file.keep(object.received, at: Int(object.count) - object.received.count)
    }
    return try MappedFile(file)
  }

  /// Requests the end of an object.
  ///
  /// - Parameters:
  ///   - server: the server, asked for this object.
  ///   - length: how many bytes are requested.
  ///   - spool: receives everything if the server does not support ranges.
  /// - Throws: `FetchFailure`; ``BackupError`` if there is no room for what arrives.
  private static func find(_ server: any RangeReader, length: Int, spool: TemporaryFile?)
    async throws -> RemoteObject
  {
    func read(_ response: HTTPResponse) async throws -> RemoteObject {
      let version = ContentVersion(response)
      guard let part = try server.part(of: response) else {
        var (count, received) = (UInt64(0), [UInt8]())
        try spool?.truncate(to: 0)
        for try await piece in response.body {
          if count == 0 { try server.refusePage(response, piece) }
          count += UInt64(piece.count)
          received = Array((received + piece.suffix(length)).suffix(length))
          try spool?.write(piece.span)
        }
        return RemoteObject(server, count: count, received: received, isWhole: true, version)
      }
      guard let total = part.total, part.last == total - 1, total <= UInt64(Int.max),
        part.last - part.first < UInt64(2 * length)
      else { throw server.otherPart("than its end") }
      let count = Int(part.last - part.first + 1)
      let received = try await response.body.collect(upTo: count, of: server.name)
      guard received.count == count else { throw server.cutOff(received.count, count) }
      return RemoteObject(server, count: total, received: received, version)
    }
    var total: UInt64?
    do {
      return try await server.get("bytes=-\(length)", tag: nil) { response in
        if try server.part(of: response) == nil { try LongWhole.refuse(response) }
        return try await read(response)
      }
    } catch let whole as LongWhole {
      total = whole.count
    } catch let failure as FetchFailure where Self.statusesOfUnknownRange.contains(failure.status) {
      // Some servers do not know this form of a range, some say so of any short file.
    }
    do {
      if total == nil { total = try await Self.length(of: server) }
      guard let total, total > UInt64(length) else {
        return try await server.get(nil, tag: nil, receive: read)
      }
      let range = "bytes=\(total - UInt64(length))-\(total - 1)"
      return try await server.get(range, tag: nil, receive: read)
    } catch let failure as FetchFailure where failure.status == 416 {
      // Nothing lies in an empty file.
      return try await server.get(nil, tag: nil, receive: read)
    }
  }

  /// How servers answer that do not know `bytes=-n`: there is nothing (416), it is malformed (400),
  /// or not implemented (501).
  private static let statusesOfUnknownRange: Set<Int?> = [400, 416, 501]

  /// How long an object is, by its first byte; nil if the server says that only with all of it.
  private static func length(of server: any RangeReader) async throws -> UInt64? {
    try await server.get("bytes=0-0", tag: nil) { try server.part(of: $0)?.total }
  }

  /// An answer that brings all of a long object instead of its end: its end is asked for otherwise.
  private struct LongWhole: Error {
    /// How many bytes it has; nil if the answer does not say.
    let count: UInt64?
    /// Up to this length the answer is read.
    private static let longestRead: UInt64 = 1 << 20

    static func refuse(_ response: HTTPResponse) throws {
      let count = response["content-length"].flatMap { UInt64($0) }
      if let count, count <= longestRead { return }
      throw LongWhole(count: count)
    }
  }

  /// Whether the object and a local archive are states of one archive: whether the longer continues
  /// where the shorter ends.
  ///
  /// - Parameters:
  ///   - file: the archive.
  ///   - committed: how many of its bytes are committed.
  /// - Throws: `FetchFailure`; `TransportError`.
  func isState(of file: MappedFile, _ committed: UInt64) async throws -> Bool {
    let end = min(count, committed)
    guard let expected = try file.ending(at: end) else { return false }
    guard count > committed else { return ending.suffix(expected.count) == expected[...] }
    var found: [UInt8] = []
    _ = try await read(end - UInt64(expected.count)..<end, of: version.withLock { $0 }) {
      found += $1
    }
    return found == expected
  }

  /// The first bytes.
  ///
  /// - Throws: `FetchFailure`; `TransportError`.
  func beginning(_ length: Int) async throws -> [UInt8] {
    guard count > 0 else { return [] }
    var found: [UInt8] = []
    let range = 0..<min(count, UInt64(length))
    _ = try await read(range, of: version.withLock { $0 }) { found += $1 }
    return found
  }

  /// All of them, if it was put there whole and does not end as an archive does: how much of it is
  /// whole its last footer says.
  func damaged(in range: Range<UInt64>) -> [Range<UInt64>] {
    let part = range.clamped(to: 0..<count)
    return endsAsArchive || !server.isPutWhole || part.isEmpty ? [] : [part]
  }

  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void
  ) throws {
    let parts = ranges.flatMap { range in
      stride(from: range.lowerBound, to: range.upperBound, by: Int(Self.longestPart)).map {
        $0..<min(range.upperBound, $0 + Self.longestPart)
      }
    }
    try BlockingBridge.shared.wait { [self] in
      try await forEachConcurrently(parts, atATime: Self.parallelParts) { part in
        try await self.fetch(part, take)
      }
    }
  }

  private func fetch(
    _ range: Range<UInt64>, _ take: @Sendable (UInt64, [UInt8]) throws -> Void
  ) async throws {
    var (place, isRegained) = (range.lowerBound, false)
    while place < range.upperBound {
      do {
        let rest = place..<range.upperBound
        place = try await read(rest, of: version.withLock { $0 }, take).end
      } catch let failure as FetchFailure where failure.kind == .replaced && !isRegained {
        guard try await regain() else { throw failure }
        isRegained = true
      }
    }
  }

  /// Reads a part.
  ///
  /// - Parameters:
  ///   - range: which.
  ///   - known: of which content it has to be; nil for any.
  ///   - take: called with an offset and the bytes from there on.
  /// - Returns: Of which content it is; and up to where it came before the answer broke off, which
  ///   is beyond the beginning.
  private func read(
    _ range: Range<UInt64>, of known: ContentVersion?, _ take: (UInt64, [UInt8]) throws -> Void
  ) async throws -> (version: ContentVersion, end: UInt64) {
    let text = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
    return try await server.get(text, tag: known?.tag) { response in
      let version = ContentVersion(response)
      if let known, !known.agrees(with: version) { throw replaced }
      let part = try server.part(of: response)
      if let part {
        guard part.first == range.lowerBound, part.last == range.upperBound - 1 else {
          throw server.otherPart("than requested")
        }
        // Where nothing names the content, its length does.
        if let known, let total = part.total, total < count || known.tag == nil && total != count {
          throw replaced
        }
      }
      let start = part?.first ?? 0
      // What comes before is passed over; what comes after is not waited for.
      var place = start
      func hasProgress() -> Bool { place >= range.lowerBound + Self.leastProgress }
      do {
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
      } catch let error as TransportError where error.isTransient && hasProgress() {
        // It is resumed.
      }
      guard place >= range.upperBound || hasProgress() else {
        throw server.cutOff(Int(place - start), range.count)
      }
      return (version, min(place, range.upperBound))
    }
  }

  private var replaced: FetchFailure {
    FetchFailure(.replaced, "\(server.name): it was replaced while it was read; read it again")
  }

  /// Whether the object's new content continues where this one ended, as that of an archive does to
  /// which a backup was added: then the new content is read from now on.
  ///
  /// The last bytes of an archive are its footer, which holds checksums of all that lies before.
  private func regain() async throws -> Bool {
    let ending = ending
    guard !isWhole, !ending.isEmpty else { return false }
    do {
      var found: [UInt8] = []
      let now = try await read(count - UInt64(ending.count)..<count, of: nil) { found += $1 }
        .version
      guard found == ending else { return false }
      version.withLock { $0 = now }
      return true
    } catch let failure as FetchFailure where failure.kind == .refused {
      return false
    }
  }
}
