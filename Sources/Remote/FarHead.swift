internal import Archive
internal import XRPC

/// The end of an object that lies elsewhere: all that one request tells of it.
struct FarHead: Sendable {
  /// How many bytes it has.
  let count: UInt64
  /// Its last bytes.
  let ending: [UInt8]
  /// What names its content; nil if the server does not say.
  let tag: String?

  /// How many bytes of the end are asked for: more than a footer has.
  static let endingLength = 4 << 10

  /// Asks for the end of an object; nil if there is none.
  ///
  /// - Throws: `FetchFailure`.
  static func of(_ server: any RangeServer) async throws -> FarHead? {
    do {
      return try await server.get("bytes=-\(endingLength)", tag: nil) { response in
        let part = response["content-range"].flatMap { ContentRange($0) }
        guard let part, let total = part.total, part.last == total - 1,
          part.last - part.first < UInt64(endingLength)
        else {
          guard response.status == 200, part == nil else {
            throw FetchFailure(
              .refused, "\(server.name): the server sends another part than its end")
          }
          return try await whole(response, server.name)
        }
        let length = Int(part.last - part.first + 1)
        let bytes = try await response.body.collect(upTo: length, of: server.name)
        guard bytes.count == length else {
          throw TransportError(.cutOff("\(bytes.count) of \(length) bytes came"), url: server.name)
        }
        return FarHead(count: total, ending: bytes, tag: response["etag"])
      }
    } catch let failure as FetchFailure where failure.kind == .absent {
      return nil
    } catch let failure as FetchFailure where failure.status == 416 {
      // Nothing lies before the end of an empty object.
      return FarHead(count: 0, ending: [], tag: nil)
    }
  }

  /// The same of a server that knows no parts: all of it comes, and its end is kept.
  private static func whole(_ response: HTTPResponse, _ name: String) async throws -> FarHead {
    var (count, ending) = (UInt64(0), [UInt8]())
    for try await piece in response.body {
      count += UInt64(piece.count)
      ending = Array((ending + piece.suffix(endingLength)).suffix(endingLength))
    }
    return FarHead(count: count, ending: ending, tag: response["etag"])
  }

  /// Reads a part of the object, which has to be the same still.
  ///
  /// - Throws: `FetchFailure`.
  func bytes(_ range: Range<UInt64>, from server: any RangeServer) async throws -> [UInt8] {
    try await server.get("bytes=\(range.lowerBound)-\(range.upperBound - 1)", tag: tag) {
      response in
      guard let part = response["content-range"].flatMap({ ContentRange($0) }),
        part.first == range.lowerBound, part.last == range.upperBound - 1
      else {
        throw FetchFailure(
          .refused, "\(server.name): the server sends another part than it was asked for")
      }
      let bytes = try await response.body.collect(upTo: range.count, of: server.name)
      guard bytes.count == range.count else {
        throw TransportError(
          .cutOff("\(bytes.count) of \(range.count) bytes came"), url: server.name)
      }
      return bytes
    }
  }
}
