package import IPLD

/// The check of a body against its CID as it streams by.
///
/// SHA-256 and identity can be checked; a body under another function passes, marked as one that
/// cannot be verified.
package struct BodyHash: ~Copyable {
  private let cid: CID
  private let identity: [UInt8]?
  private var hash = SHA256()
  private var seen: UInt64 = 0
  private var differs = false

  /// A check of no bytes yet.
  package init(_ cid: CID) {
    self.cid = cid
    identity = cid.multihash.function == .identity ? cid.multihash.digest : nil
  }

  /// Adds bytes of the body.
  package mutating func update(_ bytes: Span<UInt8>) {
    if cid.multihash.sha256 != nil {
      hash.update(bytes)
    } else if let identity, !differs {
      let end = seen + UInt64(bytes.count)
      if end > UInt64(identity.count)
        || !bytes.equals(identity.span.extracting(Int(seen)..<Int(end)))
      {
        differs = true
      }
    }
    seen += UInt64(bytes.count)
  }

  /// The result of the comparison.
  package mutating func finish() -> Multihash.Verification {
    if let digest = cid.multihash.sha256 { return hash.finish() == digest ? .matches : .mismatch }
    guard let identity else { return .cannotVerify }
    return !differs && seen == UInt64(identity.count) ? .matches : .mismatch
  }
}
