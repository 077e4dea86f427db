internal import IPLD

/// How much is read of an archive, by what its file can honestly hold.
///
/// Every section holds a hash that does not compress, and media hardly does, so an honest archive
/// decompresses to a few times its size. One that claims far more is refused, unless the caller
/// asks for it.
package struct ReadLimits: Sendable {
  /// Whether everything is read, however much it is.
  package var allowsLarge: Bool

  /// Limits; by default those for files from anywhere.
  package init(allowsLarge: Bool = false) { self.allowsLarge = allowsLarge }

  /// How many bytes of content a file of so many bytes may have.
  package func content(ofFile size: UInt64) -> UInt64 {
    guard !allowsLarge else { return .max }
    return size.multipliedSaturated(by: Self.maximumRatio).addingSaturated(Self.alwaysAllowed)
  }

  /// How many frames a file of so many bytes may have.
  func frames(ofFile size: Int) -> Int { allowsLarge ? .max : max(1 << 18, size >> 10) }

  /// How many ordinals may be lost of a file of so many bytes.
  ///
  /// No honest section is stored in fewer than the 32 bytes of its hash.
  func lostOrdinals(ofFile size: Int) -> UInt64 { 1 << 12 + UInt64(size >> 5) }

  private static let maximumRatio: UInt64 = 16
  private static let alwaysAllowed: UInt64 = 256 << 20
}
