/// Writes a CAR of version 1 piece by piece, to wherever its caller puts bytes.
public enum CARWriter {
  /// Appends the header for `roots`.
  public static func appendHeader(roots: [CID], to bytes: inout [UInt8]) {
    bytes.append(contentsOf: CARHeader(roots: roots).bytes)
  }

  /// Appends a section: its length, its CID, its body.
  public static func appendSection(_ cid: CID, _ body: Span<UInt8>, to bytes: inout [UInt8]) {
    appendPrefix(cid, bodyLength: body.count, to: &bytes)
    bytes.append(contentsOf: body)
  }

  /// Appends what comes before the body of a section: its length and its CID.
  public static func appendPrefix(_ cid: CID, bodyLength: Int, to bytes: inout [UInt8]) {
    let name = cid.bytes
    Varint.append(UInt64(name.count + bodyLength), to: &bytes)
    bytes.append(contentsOf: name)
  }
}
