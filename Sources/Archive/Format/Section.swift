package import IPLD

/// A section of the CAR stream, without its body.
package struct Section: Equatable, Sendable {
  /// Its number in the stream, from 0.
  package let ordinal: UInt64
  /// The CID of its body.
  package let cid: CID
  /// How long the body is.
  package let bodyLength: UInt64
}
