/// A block on its own: a CID and the bytes it names.
public struct Block: Equatable, Sendable {
  /// Its CID.
  public let cid: CID
  /// Its bytes.
  public let bytes: [UInt8]

  /// A block of these parts; nothing is checked.
  package init(cid: CID, bytes: [UInt8]) {
    self.cid = cid
    self.bytes = bytes
  }
}
