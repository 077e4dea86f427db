public import IPLD

/// A section of the CAR stream, without its body.
public struct Section: Equatable, Sendable {
  /// Its number in the stream, from 0.
  public let ordinal: UInt64
  /// The CID of its body.
  public let cid: CID
  /// How long the body is.
  public let bodyLength: UInt64

  /// A section.
  public init(ordinal: UInt64, cid: CID, bodyLength: UInt64) {
    self.ordinal = ordinal
    self.cid = cid
    self.bodyLength = bodyLength
  }
}

/// What to do with a section, once its CID and length are known.
public enum SectionVisit: Sendable {
  /// Hand out its body.
  case read
  /// Go on with the next. The body is not looked at.
  case skip
  /// Go on with none.
  case stop
}
