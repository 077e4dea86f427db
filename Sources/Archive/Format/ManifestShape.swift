package import IPLD

/// What can be told of a manifest without knowing what its fields mean (FORMAT 6).
package enum ManifestShape {
  /// Whether a value is a map with the version of a manifest, a CAR and a commit.
  package static func matches(_ value: IPLDValue) -> Bool {
    value["carpack"]?.integer != nil && value["car"]?.map != nil && value["commit"]?.link != nil
  }

  /// Whether a section is a manifest that follows `head`.
  static func describes(_ cid: CID, _ body: Span<UInt8>, after head: Generation.Head?) -> Bool {
    guard cid.codec == .dagCBOR else { return false }
    do {
      let value = try DAGCBORDecoder.decode(body)
      return matches(value) && value["prev"]?.link == head?.cid
    } catch {
      // Not DAG-CBOR, so no manifest.
      return false
    }
  }
}
