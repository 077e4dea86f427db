import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// Writes the body of an answer no faster than the connection takes it.
///
/// A write is handed to the thread of the connection, and waits if that has said that no more goes
/// out at the moment. A writer on another thread is notified only once that thread has looked at
/// what it was handed, and would fill memory meanwhile. So who has written a piece writes nothing,
/// an empty buffer, before making the next one: that waits until more goes out.
struct PacedWriter: ResponseBodyWriter {
  var writer: any ResponseBodyWriter
  let channel: any Channel

  @concurrent mutating func write(_ buffer: ByteBuffer) async throws {
    if buffer.readableBytes == 0 { try await channel.eventLoop.submit {}.get() }
    try await writer.write(buffer)
  }

  @concurrent consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
    try await writer.finish(trailingHeaders)
  }
}

extension Response {
  /// Up to this length a body goes out in one piece.
  private static let onePiece = 64 << 10

  /// The same, its body written at the pace of the connection.
  func paced(on channel: any Channel) -> Response {
    guard body.contentLength ?? .max > Self.onePiece else { return self }
    var response = self
    let body = body
    response.body = ResponseBody(contentLength: body.contentLength) { writer in
      try await body.write(PacedWriter(writer: writer, channel: channel))
    }
    return response
  }
}
