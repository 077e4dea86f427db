/// How the entries of an index segment are written (FORMAT 4.1).
///
/// All live segments of a file have one form, for life: the packed one where the footer has the
/// feature ``FeatureFlags/packedIndex``, as in every file that is begun by now, and the wide one in
/// files of 1.0.
package enum IndexForm: UInt8, Sendable {
  /// Eight bytes an entry: 32 bits of the key, and the ordinal.
  case wide = 0
  /// About four bytes: the leading bits of the key follow from the entry's place.
  case packed = 1

  /// The ordinals below this one have the fewest key bits in the packed form.
  private static let fewest = 1 << 18

  /// How many leading bits of the key of the section `ordinal` an entry keeps.
  ///
  /// It depends on the ordinal alone, so that segments can be merged, and a longer range covered,
  /// without reading a section. With each doubling of the file a key has one bit more: that a CID
  /// which is not there meets an entry by chance is as likely as 1 in 1,000 in a file of 262,144
  /// sections, 1 in 600 of ten million, and 1 in 400 of a billion.
  @inline(__always)
  func keyBits(of ordinal: UInt64) -> Int {
    switch self {
    case .wide: return 32
    case .packed:
      guard ordinal >= UInt64(Self.fewest) else { return 28 }
      return min(48, 12 + UInt64.bitWidth - ordinal.leadingZeroBitCount)
    }
  }

  /// The bits of a key that an entry for the section `ordinal` keeps, in their places; zeros after
  /// them.
  @inline(__always)
  package func kept(_ key: UInt64, of ordinal: UInt64) -> UInt64 {
    key & ~(.max >> UInt64(keyBits(of: ordinal)))
  }

}

/// An entry of an index segment: the bits of the key that are kept, in their places, with zeros
/// after them; and the ordinal, less the segment's base.
typealias IndexEntry = (key: UInt64, ordinal: UInt32)
