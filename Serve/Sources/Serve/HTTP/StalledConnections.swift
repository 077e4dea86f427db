import NIOCore

/// Closes a connection on which nothing moves: a client that asked, and reads no answer, would hold
/// one for as long as it likes.
///
/// It stands behind an `IdleStateHandler`, which says so. What is being written counts as moving
/// each time a piece of it has gone out.
final class StalledConnections: ChannelInboundHandler, RemovableChannelHandler, Sendable {
  typealias InboundIn = NIOAny

  /// How long nothing may move.
  static let limit = TimeAmount.minutes(5)

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is IdleStateHandler.IdleStateEvent {
      context.close(promise: nil)
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }
}
