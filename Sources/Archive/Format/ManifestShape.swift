package import IPLD

/// What can be told of a manifest without knowing what its fields mean (FORMAT 6).
package struct ManifestShape {
  /// Whether a value is a map with the version of a manifest, a CAR and a commit.
  package static func matches(_ value: IPLDValue) -> Bool {
    value["carpack"]?.integer != nil && value["car"]?.map != nil && value["commit"]?.link != nil
  }

  /// Whether a section is a manifest that follows `head`.
  static func describes(_ cid: CID, _ body: Span<UInt8>, after head: Generation.Head?) -> Bool {
    guard let manifest = Self(cid, body) else { return false }
    return manifest.previous == head?.cid
  }

  /// The manifest before it.
  let previous: CID?

  /// A section that has the shape of a manifest; nil for any other.
  init?(_ cid: CID, _ body: Span<UInt8>) {
    guard cid.codec == .dagCBOR else { return nil }
    do {
      let value = try DAGCBORDecoder.decode(body)
      guard Self.matches(value) else { return nil }
      previous = value["prev"]?.link
    } catch {
      // Not DAG-CBOR, so no manifest.
      return nil
    }
  }
}

/// The manifests of a first generation, which may have several: those that lead back to one without another before it.
struct ManifestTrail {
  private var cids: Set<CID> = []

  /// Takes a manifest, and answers whether it is the first or follows one that was taken.
  mutating func take(_ manifest: ManifestShape, _ cid: CID) -> Bool {
    guard manifest.previous.map(cids.contains) ?? true else { return false }
    cids.insert(cid)
    return true
  }
}
