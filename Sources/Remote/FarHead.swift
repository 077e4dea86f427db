internal import Archive
internal import Files
internal import XRPC

/// The end of an object that lies elsewhere: all that one request tells of it.
struct FarHead: Sendable {
  /// How many bytes it has.
  let count: UInt64
  /// The bytes of the end that came.
  let received: [UInt8]
  /// What names its content, if the server says.
  let version: ContentVersion
  /// Whether the server knows no parts, so that all of it came.
  var isWhole = false

  /// How many of the last bytes tell it from all others: more than a footer has.
  static let endingLength = 4 << 10

  /// Its last bytes, by which another content is known to go on where it ended.
  var ending: [UInt8] { Array(received.suffix(Self.endingLength)) }

  /// What names its content; nil if the server does not say.
  var tag: String? { version.tag }

  /// Asks for the end of an object; nil if there is none.
  ///
  /// - Throws: `FetchFailure`.
  static func of(_ server: any RangeServer) async throws -> FarHead? {
    do {
      return try await read(server, length: endingLength, spool: nil)
    } catch let failure as FetchFailure where failure.kind == .absent {
      return nil
    }
  }

  /// Asks for the end of an object.
  ///
  /// - Parameters:
  ///   - server: the server, asked for this object.
  ///   - length: how many bytes are asked for.
  ///   - spool: where all of it goes that comes from a server that knows no parts.
  /// - Throws: `FetchFailure`; ``BackupError`` if there is no room for what comes.
  static func read(_ server: any RangeServer, length: Int, spool: TemporaryFile?) async throws
    -> FarHead
  {
    do {
      return try await server.get("bytes=-\(length)", tag: nil) { response in
        try await read(response, server, length, spool)
      }
    } catch let failure as FetchFailure where failure.status == 416 {
      // Nothing lies before the end of an empty file; some servers say so of any short one.
      return try await server.get(nil, tag: nil) { response in
        try await read(response, server, length, spool)
      }
    }
  }

  private static func read(
    _ response: HTTPResponse, _ server: any RangeServer, _ length: Int, _ spool: TemporaryFile?
  ) async throws -> FarHead {
    try server.refuseEncoded(response)
    let version = ContentVersion(response)
    guard let text = response["content-range"] else {
      guard response.status == 200 else {
        throw FetchFailure(
          .refused, "\(server.name): the server does not say which part it sends")
      }
      var (count, received) = (UInt64(0), [UInt8]())
      try spool?.truncate(to: 0)
      for try await piece in response.body {
        count += UInt64(piece.count)
        received = Array((received + piece.suffix(length)).suffix(length))
        try spool?.write(piece.span)
      }
      return FarHead(count: count, received: received, version: version, isWhole: true)
    }
    guard let part = ContentRange(text), let total = part.total, part.last == total - 1,
      total <= UInt64(Int.max), part.last - part.first < UInt64(2 * length)
    else { throw server.otherPart("than its end") }
    let count = Int(part.last - part.first + 1)
    return FarHead(
      count: total, received: try await server.bytes(of: response, count: count),
      version: version)
  }

  /// Reads a part of the object, which has to be the same still.
  ///
  /// - Throws: `FetchFailure`; `TransportError`.
  func bytes(_ range: Range<UInt64>, from server: any RangeServer) async throws -> [UInt8] {
    try await server.part(range, tag: tag).bytes
  }
}
