internal import IPLD

/// The numbers of FORMAT sections 3 and 8; and how much is read of an archive, by what its file can
/// honestly hold.
///
/// Every section holds a hash that does not compress, and media hardly does, so an honest archive
/// decompresses to a few times its size. One that claims far more is refused, unless the caller
/// asks for it.
package struct ArchiveLimits: Sendable {
  /// How much content a pack may have.
  package static let packContent = 1 << 20
  /// The body length from which a section has frames of its own.
  package static let largeBody = 1 << 16
  /// How much of a large body lies in one frame.
  package static let bodyPerFrame = 1 << 22
  /// The longest `varint CID` in front of a body: nine bytes and the longest CID.
  package static let sectionPrefix = 9 + 2084
  /// The most content a data frame may have.
  package static let frameContent = bodyPerFrame + sectionPrefix
  /// The longest CAR header, its varint not counted.
  package static let carHeader = 1 << 20
  /// How many sections may share one key, which is to say one hash: an archive needs only a few
  /// codecs for the same bytes, and each costs every lookup of the others a comparison.
  package static let aliases = 256
  /// How many live index segments a footer may name.
  package static let liveSegments = 16

  /// Whether everything is read, however much it is.
  package var allowsLarge: Bool

  /// Limits; by default those for files from anywhere.
  package init(allowsLarge: Bool = false) { self.allowsLarge = allowsLarge }

  /// How many bytes of content a file of this many bytes may have.
  package func content(ofFile size: UInt64) -> UInt64 {
    guard !allowsLarge else { return .max }
    return size.multipliedSaturated(by: Self.maximumRatio).addingSaturated(Self.alwaysAllowed)
  }

  /// How many frames a file of this many bytes may have.
  func frames(ofFile size: Int) -> Int { allowsLarge ? .max : max(1 << 18, size >> 10) }

  /// How many ordinals may be lost of a file of this many bytes.
  ///
  /// No honest section is stored in fewer than the 32 bytes of its hash.
  func lostOrdinals(ofFile size: Int) -> UInt64 { 1 << 12 + UInt64(size >> 5) }

  private static let maximumRatio: UInt64 = 16
  private static let alwaysAllowed: UInt64 = 256 << 20
}
