package import IPLD

/// What can be told of a manifest without knowing what its fields mean (FORMAT 6).
package struct ManifestShape: Sendable {
  /// Whether a value is a map with the version of a manifest, a CAR and a commit.
  package static func matches(_ value: IPLDValue) -> Bool {
    value["carpack"]?.integer != nil && value["car"]?.map != nil && value["commit"]?.link != nil
  }

  /// The longest manifest that is read (FORMAT 8).
  package static let maximumLength = 4 << 20

  /// Its CID.
  package let cid: CID
  /// The manifest before it.
  package let previous: CID?
  /// The commit it names.
  package let commit: CID
  /// When it was made, in its own words; empty if it does not say.
  package let createdAt: String

  /// A section that has the shape of a manifest; nil for any other.
  package init?(_ cid: CID, _ body: Span<UInt8>) {
    // What is not DAG-CBOR is not a manifest.
    guard cid.codec == .dagCBOR, cid.multihash.sha256 != nil, body.count <= Self.maximumLength,
      Self.namesItsField(body), let value = try? DAGCBORDecoder.decode(body),
      Self.matches(value), let commit = value["commit"]?.link
    else { return nil }
    self.cid = cid
    self.commit = commit
    previous = value["prev"]?.link
    createdAt = value["createdAt"]?.string ?? ""
  }

  /// Whether a block holds the name of the field that makes it a manifest, so that it is worth
  /// decoding.
  package static func namesItsField(_ bytes: Span<UInt8>) -> Bool {
    // As text of seven bytes in DAG-CBOR: "gcarpack".
    let name: UInt64 = 0x6b63_6170_7261_6367
    var place = 0
    while place <= bytes.count - 8 {
      if bytes.u64(place) == name { return true }
      place += 1
    }
    return false
  }
}
