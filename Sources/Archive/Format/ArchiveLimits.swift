/// The numbers of FORMAT sections 3 and 8.
package enum ArchiveLimits {
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
  /// How many sections may share one key, which is to say one hash: nobody needs more than a few
  /// codecs for the same bytes, and each costs every lookup of the others a comparison.
  package static let aliases = 256
  /// How many live index segments a footer may name.
  package static let liveSegments = 16
}
