import NIOCore

/// Keeps what waits to go out on a connection short, and closes one on which nothing moves: a
/// client that asked, and reads no answer, would hold one for as long as it likes.
///
/// It stands behind an `IdleStateHandler`, which says so. What is being written counts as moving
/// each time a piece of it has gone out.
final class StalledConnections: ChannelInboundHandler, RemovableChannelHandler, Sendable {
  typealias InboundIn = NIOAny

  /// How long nothing may move.
  static let limit = TimeAmount.minutes(5)

  /// How many bytes wait to go out before a writer has to wait.
  private static let waterMark = ChannelOptions.Types.WriteBufferWaterMark(
    low: 4 << 10, high: 8 << 10)

  func handlerAdded(context: ChannelHandlerContext) {
    // A connection that cannot have it keeps what is usual, 64 KiB.
    context.channel.setOption(.writeBufferWaterMark, value: Self.waterMark).whenFailure { _ in }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is IdleStateHandler.IdleStateEvent {
      context.close(promise: nil)
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }
}
