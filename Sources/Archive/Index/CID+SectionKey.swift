package import IPLD

extension CID {
  /// The first eight bytes, as a number, of the key that a section is found by (FORMAT 4.1).
  ///
  /// The key is the digest of a CID with SHA-256, and the SHA-256 of any other CID, whose digest
  /// may be anything. A segment keeps some leading bits of it, `IndexForm.keyBits(of:)`, so that
  /// segments can be merged without reading a section; 64 are kept in memory. A hit is confirmed
  /// against the whole CID in any case.
  package var sectionKey: UInt64 {
    @inline(__always) get {
      let digest = multihash.sha256 ?? SHA256.digest(of: bytes.span)
      return UInt64(bigEndian: digest.words.0)
    }
  }
}

extension UInt64 {
  /// The first `bits` bits of a key as a number.
  @inline(__always)
  package func leading(_ bits: Int) -> Int {
    bits == 0 ? 0 : Int(truncatingIfNeeded: self >> (64 - UInt64(bits)))
  }
}
