/// The two sets of feature bits in a footer (FORMAT 4.2).
///
/// A reader that does not know a *required* bit stops and names it; *optional* bits it does not
/// know it ignores, and a writer keeps them. Version 1.0 defines none of either; 1.1 has three
/// required bits, ``repaired``, ``undigested`` and ``packedIndex``, and one optional one,
/// ``protected``.
package struct FeatureFlags: Hashable, Sendable {
  /// What a reader has to know to read the file rightly.
  package let required: UInt64
  /// What a reader may ignore.
  package let optional: UInt64

  /// The required bit of a file that was repaired: ordinals may be lost or superseded, and what
  /// lies before the last footer may no longer count (FORMAT 5.2).
  package static let repaired: UInt64 = 1 << 0

  /// The required bit of a file with snapshots that were not received as CARs, whose manifests have
  /// no digest of one (FORMAT 6.1).
  package static let undigested: UInt64 = 1 << 1

  /// The required bit of a file whose index segments have the packed form (FORMAT 4.1).
  package static let packedIndex: UInt64 = 1 << 2

  /// The optional bit of a file whose generations are protected by parity: a writer that knows how
  /// protects what it appends, too (FORMAT 4.5).
  package static let protected: UInt64 = 1 << 0

  /// The required bits that this program knows.
  package static let knownRequired: UInt64 = repaired | undigested | packedIndex

  /// The flags of a new file.
  package static let ofNewFile = FeatureFlags(required: packedIndex)

  /// Whether the file was repaired.
  package var isRepaired: Bool { required & Self.repaired != 0 }

  /// Whether parity protects what is appended.
  package var isProtected: Bool { optional & Self.protected != 0 }

  /// How the entries of the file's index segments are written.
  package var indexForm: IndexForm { required & Self.packedIndex != 0 ? .packed : .wide }

  /// A pair of sets.
  package init(required: UInt64 = 0, optional: UInt64 = 0) {
    self.required = required
    self.optional = optional
  }

  /// These features and some more.
  func adding(required: UInt64, optional: UInt64 = 0) -> FeatureFlags {
    FeatureFlags(required: self.required | required, optional: self.optional | optional)
  }

  /// Refuses required features that are not known here.
  ///
  /// - Throws: ``ArchiveError`` that names the bits.
  package func check(offset: UInt64) throws(ArchiveError) {
    let unknown = required & ~Self.knownRequired
    guard unknown == 0 else { throw ArchiveError(.unknownFeatures(unknown), offset: offset) }
  }

  /// The bits of a set in words: `feature bit 3`, `feature bits 0 and 63`.
  package static func describe(_ bits: UInt64) -> String {
    let names = (0..<64).filter { bits >> UInt64($0) & 1 == 1 }.map(String.init)
    guard names.count != 1 else { return "feature bit \(names[0])" }
    return "feature bits \(names.dropLast().joined(separator: ", ")) and \(names.last ?? "none")"
  }
}
