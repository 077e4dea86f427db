/// Something that happens to a body on its way, below the level on which the handler writes it.
package enum Distortion: Sendable, Hashable {
  /// Where in a body: a fraction of its length, 0 to 1, so that it suits bodies of any length.
  package typealias Place = Double

  /// The connection ends in the middle, though more was announced.
  case cut(at: Place)
  /// The connection ends after so many bytes, if there are more.
  case cutAfter(bytes: Int)
  /// The connection is reset in the middle.
  case reset(at: Place)
  /// The body ends in the middle, and the head announces no more than that: to all appearances it
  /// is whole.
  case shortened(to: Place)
  /// One bit is another one.
  case corrupted(at: Place)
  /// After this part nothing more comes, and the connection stays.
  case stalled(at: Place)
  /// No more than this many bytes a second.
  case dripping(bytesPerSecond: Int)
  /// `Content-Length` says this many bytes more than there are, or fewer.
  case misannounced(by: Int)
  /// After the body zeros follow, without an end.
  case endless
}
