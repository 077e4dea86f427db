import LibC
import NIOCore
import Synchronization

/// Keeps what waits to go out on a connection short, closes one on which nothing moves, and tells
/// whether its client is gone: a client that sends a request and does not read the answer could
/// hold a connection for as long as it likes.
///
/// It stands behind an `IdleStateHandler`, which says that nothing moves. What is being written
/// counts as moving each time a piece of it has gone out.
final class ClientConnection: ChannelInboundHandler, Sendable {
  typealias InboundIn = NIOAny

  /// How long nothing may move.
  static let limit = TimeAmount.minutes(5)

  /// How many bytes wait to go out before a writer has to wait.
  private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(
    low: 4 << 10, high: 8 << 10)

  /// How many bytes the system may hold for a client that it has not begun to send.
  ///
  /// Without a limit it takes megabytes for one that reads nothing.
  private static let unsent = (
    option: ChannelOptions.Types.SocketOption(
      level: .tcp, name: .init(rawValue: CInt(TCP_NOTSENT_LOWAT))),
    limit: 128 << 10
  )

  /// The connection on which the request came that this task answers; nil if it answers none.
  @TaskLocal static var ofTask: ClientConnection?

  private let isEnded = Atomic<Bool>(false)

  /// Whether the client has closed the connection, or its half of it: the two look the same until
  /// something is sent.
  var isGone: Bool { isEnded.load(ordering: .relaxed) }

  func handlerAdded(context: ChannelHandlerContext) {
    // A connection that cannot have it keeps what is usual, 64 KiB.
    context.channel.setOption(.writeBufferWaterMark, value: Self.waterMark).whenFailure { _ in }
    context.channel.setOption(Self.unsent.option, value: Self.unsent.limit).whenFailure { _ in }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is IdleStateHandler.IdleStateEvent {
      context.close(promise: nil)
      return
    }
    if case .inputClosed? = event as? ChannelEvent { isEnded.store(true, ordering: .relaxed) }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    isEnded.store(true, ordering: .relaxed)
    context.fireChannelInactive()
  }
}
