/// The body of an answer, in the pieces it arrives in.
///
/// It is read once, by one task. The transfer waits for the reader; it ends when the body is
/// released.
package struct HTTPBody: AsyncSequence, AsyncIteratorProtocol, Sendable {
  /// Some bytes, at least one.
  package typealias Element = [UInt8]

  /// What is shared by all copies of a body, so that the last of them ends the transfer.
  private final class Handle: Sendable {
    let pipe: BodyPipe
    init(_ pipe: BodyPipe) { self.pipe = pipe }
    deinit { pipe.abandon() }
  }

  private let handle: Handle

  /// The pipe from which it comes.
  var pipe: BodyPipe { handle.pipe }

  /// The body that comes out of a pipe.
  init(_ pipe: BodyPipe) { handle = Handle(pipe) }

  /// A body that is already in memory.
  ///
  /// - Parameters:
  ///   - pieces: what it is made of.
  ///   - error: why it ends too early; nil if it is whole.
  package init(_ pieces: [[UInt8]], endingWith error: TransportError? = nil) {
    let pipe = BodyPipe()
    for piece in pieces where !piece.isEmpty { pipe.put(piece) }
    pipe.finish(throwing: error)
    self.init(pipe)
  }

  /// An iterator over what is left.
  package func makeAsyncIterator() -> HTTPBody { self }

  /// The next bytes; nil at the end.
  ///
  /// - Throws: ``TransportError`` if the body ends too early, or stops, or takes too long;
  ///   `CancellationError`.
  package func next() async throws -> [UInt8]? { try await pipe.next() }

  /// All of it.
  ///
  /// - Parameters:
  ///   - limit: how many bytes it may have.
  ///   - url: what was requested, for messages.
  /// - Throws: ``TransportError`` if it is longer, or what reading throws.
  package func collect(upTo limit: Int, of url: String) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await piece in self {
      guard piece.count <= limit - bytes.count else {
        throw TransportError(.tooLong(limit: limit), url: url)
      }
      if bytes.isEmpty { bytes = piece } else { bytes += piece }
    }
    return bytes
  }

  /// The beginning of it, as far as it arrives.
  ///
  /// - Throws: `CancellationError`.
  package func beginning(_ count: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    do {
      for try await piece in self {
        bytes += piece.prefix(count - bytes.count)
        if bytes.count == count { break }
      }
    } catch is TransportError {
      // For a message: shows as much of it as there is.
    }
    return bytes
  }
}
