/// Writes a CAR of version 1 piece by piece, to wherever its caller puts bytes.
package enum CARWriter {
  /// Appends the header for `roots`.
  package static func appendHeader(roots: [CID], to bytes: inout [UInt8]) {
    bytes.append(contentsOf: CARHeader(roots: roots).bytes)
  }

  /// Appends a section: its length, its CID, its body.
  package static func appendSection(_ cid: CID, _ body: Span<UInt8>, to bytes: inout [UInt8]) {
    appendPrefix(cid, bodyLength: UInt64(body.count), to: &bytes)
    bytes.append(contentsOf: body)
  }

  /// Appends what comes before the body of a section: its length and its CID.
  package static func appendPrefix(_ cid: CID, bodyLength: UInt64, to bytes: inout [UInt8]) {
    Varint.append(UInt64(cid.byteCount) + bodyLength, to: &bytes)
    cid.append(to: &bytes)
  }
}
