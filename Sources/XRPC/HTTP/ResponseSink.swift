/// Where the body of an answer goes, piece by piece, as it arrives.
///
/// Its methods are called by the transport's event thread, in this order: ``begin(_:offset:transfer:)`` once the head is there, then
/// ``take(_:)`` for each piece. They have to return soon: everything else waits.
public protocol ResponseSink: AnyObject, Sendable {
  /// How many bytes of the body need not be sent again should the transfer be tried once more; 0 starts over.
  var resumableOffset: UInt64 { get }

  /// The head of an answer of success has arrived.
  ///
  /// - Parameters:
  ///   - response: the head.
  ///   - offset: where in the body the first piece belongs: 0, or ``resumableOffset`` if the server goes on from there.
  ///   - transfer: the transfer, to go on with it after a pause.
  /// - Throws: what ends the transfer; the caller of the transport gets it.
  func begin(_ response: HTTPResponse, offset: UInt64, transfer: any Transfer) throws

  /// Takes the next bytes of the body, all of them or none.
  ///
  /// - Returns: ``Flow/pause`` if none was taken: they come again after ``Transfer/resume()``.
  /// - Throws: what ends the transfer; the caller of the transport gets it.
  func take(_ bytes: Span<UInt8>) throws -> Flow

  /// The transfer has failed; it may be tried once more, but not before others have had their turn.
  ///
  /// A sink lets go here of what others may be waiting for: a transfer that waits for them while it holds what they need would wait for ever.
  /// Not called by the event thread, but by the task that sent the request, when the transfer has ended.
  func suspend()
}

extension ResponseSink {
  /// 0: nothing can be gone on with.
  public var resumableOffset: UInt64 { 0 }

  /// Nothing: others wait for nothing that it holds.
  public func suspend() {}
}

/// What a sink answers.
public enum Flow: Sendable {
  /// The bytes were taken.
  case proceed
  /// They were not; the transfer waits.
  case pause
}

/// A transfer that is under way.
public protocol Transfer: AnyObject, Sendable {
  /// Goes on after a pause. From any thread, at any time; without a pause it does nothing.
  func resume()
}
