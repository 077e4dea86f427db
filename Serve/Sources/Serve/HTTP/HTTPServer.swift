import HTTP
import NIOCore
import NIOHTTP1
import NIOPosix

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Answers requests of HTTP/1.1 (RFC 9112) on an address.
struct HTTPServer {
  /// Finds the response to a request; the client is named by its address.
  typealias Answer = @Sendable (Request, _ client: String) async -> Response

  /// How many connections there are at a time; others wait to be accepted.
  private static let maximumConnections = 1024

  let host: String
  let port: Int
  let answer: Answer

  /// Answers until the task is cancelled, and then ends the answers that are being sent.
  ///
  /// - Parameter isBound: is called with the port once there is one.
  /// - Throws: `IOError`, `SocketAddressError` if the address cannot be bound to.
  func run(isBound: (Int) -> Void) async throws {
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.backlog, value: 256)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      // A client may half-close after its last request, and still wants the answers.
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .bind(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture { try Connection(channel) }
      }
    isBound(listener.channel.localAddress?.port ?? port)
    do {
      try await listener.executeThenClose { connections in
        try await withThrowingTaskGroup(of: Void.self) { group in
          var count = 0
          for try await connection in connections {
            if count == Self.maximumConnections {
              try await group.next()
              count -= 1
            }
            group.addTask { await connection.serve(answer) }
            count += 1
          }
        }
      }
    } catch is CancellationError {
      // The connections are closed by now.
    }
  }
}

/// A connection, on which one request is answered after the other.
private struct Connection: Sendable {
  private static let maximumHeader = 32 << 10
  private static let maximumFields = 100

  /// How long a client may take for its next request, and to close a connection that is at its end.
  private static let patience = TimeAmount.seconds(60)

  private typealias Parts = NIOAsyncChannelInboundStream<HTTPServerRequestPart>
  private typealias Writer = NIOAsyncChannelOutboundWriter<HTTPServerResponsePart>

  private let client = ClientConnection()
  private let parts: NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

  init(_ channel: any Channel) throws {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = Self.maximumHeader
    limits.maxHeaderListSize = Self.maximumHeader
    limits.maxHeaderFieldCount = Self.maximumFields
    let pipeline = channel.pipeline.syncOperations
    try pipeline.configureHTTPServerPipeline(
      withPipeliningAssistance: false, withErrorHandling: false, withEncoderConfiguration: .init(),
      withDecoderLimitConfiguration: limits)
    try pipeline.addHandler(IdleStateHandler(allTimeout: ClientConnection.limit))
    try pipeline.addHandler(client)
    parts = try NIOAsyncChannel(
      wrappingChannelSynchronously: channel,
      configuration: .init(isOutboundHalfClosureEnabled: true))
  }

  /// Answers what the client asks for until one of the two closes the connection, or the task is
  /// cancelled.
  func serve(_ answer: @escaping HTTPServer.Answer) async {
    do {
      try await parts.executeThenClose { inbound, outbound in
        var requests = inbound.makeAsyncIterator()
        do {
          while let head = try await next(&requests) {
            // A cancelled task writes nothing. What has been begun is sent to its end by another.
            try await Task { try await respond(to: head, by: answer, outbound) }.value
            guard head.isFollowed else { break }
          }
        } catch is HTTPParserError {
          let headers: HTTPHeaders = ["Connection": "close", "Content-Length": "0"]
          try await outbound.write(
            contentsOf: [
              .head(HTTPResponseHead(version: .http1_1, status: .badRequest, headers: headers)),
              .end(nil),
            ])
        }
        // The system would drop what is on its way if the client's last bytes were not read.
        outbound.finish()
        while try await next(&requests) != nil {}
      }
    } catch {
      // The client is gone, or got only a part of the answer.
    }
  }

  /// The head of the next request, after what is left of the one before; nil if there is none.
  private func next(_ requests: inout Parts.AsyncIterator) async throws -> HTTPRequestHead? {
    let channel = parts.channel
    let end = channel.eventLoop.scheduleTask(in: Self.patience) { channel.close(promise: nil) }
    defer { end.cancel() }
    while let part = try await requests.next(isolation: #isolation) {
      if case .head(let head) = part { return head }
    }
    return nil
  }

  private func respond(to head: HTTPRequestHead, by answer: HTTPServer.Answer, _ writer: Writer)
    async throws
  {
    let address = parts.channel.remoteAddress?.ipAddress ?? "-"
    let response = await ClientConnection.$ofTask.withValue(client) {
      await answer(Request(head), address)
    }
    var headers = response.headers
    headers[.date] = HTTPDate.text(Int64(Date().timeIntervalSince1970))
    headers[.contentLength] = response.length.map(String.init)
    if !head.isFollowed { headers[.connection] = "close" }
    let start = HTTPServerResponsePart.head(
      HTTPResponseHead(version: head.version, status: response.status, headers: headers))
    switch response.body {
    case _ where head.method == .HEAD: try await writer.write(start)
    case .bytes(let bytes):
      try await writer.write(contentsOf: [start, .body(.byteBuffer(bytes)), .end(nil)])
    case .written(_, let write):
      try await writer.write(start)
      try await write(BodyWriter(parts: writer, channel: parts.channel))
      try await writer.write(.end(nil))
    }
  }
}

extension HTTPRequestHead {
  /// Whether another request may follow on the connection.
  ///
  /// HTTP/1.0 has no chunks: what has no length there ends with the connection.
  fileprivate var isFollowed: Bool { version == .http1_1 && isKeepAlive }
}
