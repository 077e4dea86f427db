package import IPLD

/// What one successful write made of the file: everything up to one footer (FORMAT 4.2).
package struct Generation: Equatable, Sendable {
  /// The newest manifest.
  package struct Head: Equatable, Sendable {
    /// Its CID, which proves the whole archive.
    package let cid: CID
    /// Its number among the sections.
    package let ordinal: UInt64
    /// Where its frame begins.
    package let frameOffset: UInt64
  }

  /// A live index segment, as the footer names it.
  package struct Segment: Equatable, Sendable {
    /// Where its frame begins.
    package let offset: UInt64
    /// The first ordinal it covers.
    package let base: UInt64
    /// How many ordinals it covers.
    package let sectionCount: UInt32
    /// How many data frames it covers.
    package let frameCount: UInt32
    /// The XXH64 of its frame.
    package let checksum: UInt64
  }

  /// Its number, from 1.
  ///
  /// 0 says that no footer was found, and that everything else here was counted by walking the
  /// file.
  package let number: UInt64
  /// Where the footer begins.
  package let footerOffset: UInt64
  /// Where the footer before it begins; nil in generation 1.
  package let previousFooterOffset: UInt64?
  /// The file up to and including the footer: what may be relied on.
  package let committedLength: UInt64
  /// How many sections the file holds.
  package let sectionCount: UInt64
  /// The length of the CAR that the file decompresses to, header included.
  package let streamLength: UInt64
  /// The newest manifest; nil while there is none.
  package let head: Head?
  /// The index, in order of ordinals.
  package let segments: [Segment]
  /// The format's minor version, by which the file was written.
  package internal(set) var minorVersion: UInt16 = Footer.minorVersion
  /// The feature bits.
  package internal(set) var features = FeatureFlags()
}

extension Generation {
  /// The generation that follows another, or the first, with its footer at a place.
  ///
  /// - Throws: ``ArchiveError`` if there are more segments or generations than can be.
  init(
    after previous: Generation?, footerAt place: UInt64, sectionCount: UInt64,
    streamLength: UInt64, head: Head?, segments: [Segment], features: FeatureFlags
  ) throws(ArchiveError) {
    guard segments.count <= ArchiveLimits.liveSegments else { throw ArchiveError(.tooManySections) }
    let (number, overflow) = (previous?.number ?? 0).addingReportingOverflow(1)
    guard !overflow else { throw ArchiveError(.tooManyGenerations) }
    self.init(
      number: number, footerOffset: place, previousFooterOffset: previous?.footerOffset,
      committedLength: place + UInt64(Footer.length(segments: segments.count)),
      sectionCount: sectionCount, streamLength: streamLength, head: head, segments: segments,
      minorVersion: max(
        previous?.minorVersion ?? Footer.minorVersion, features.required == 0 ? 0 : 1),
      features: features)
  }
}
