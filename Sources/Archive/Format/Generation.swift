public import IPLD

/// What one successful write made of the file: everything up to one footer (FORMAT 4.2).
public struct Generation: Equatable, Sendable {
  /// The newest manifest.
  public struct Head: Equatable, Sendable {
    /// Its CID, which proves the whole archive.
    public let cid: CID
    /// Its number among the sections.
    public let ordinal: UInt64
    /// Where its frame begins.
    public let frameOffset: UInt64

    /// A head.
    public init(cid: CID, ordinal: UInt64, frameOffset: UInt64) {
      self.cid = cid
      self.ordinal = ordinal
      self.frameOffset = frameOffset
    }
  }

  /// A live index segment, as the footer names it.
  public struct Segment: Equatable, Sendable {
    /// Where its frame begins.
    public let offset: UInt64
    /// The first ordinal it covers.
    public let base: UInt64
    /// How many ordinals it covers.
    public let sectionCount: UInt32
    /// How many data frames it covers.
    public let frameCount: UInt32
    /// The XXH64 of its frame.
    public let checksum: UInt64

    /// A segment.
    public init(
      offset: UInt64, base: UInt64, sectionCount: UInt32, frameCount: UInt32, checksum: UInt64
    ) {
      self.offset = offset
      self.base = base
      self.sectionCount = sectionCount
      self.frameCount = frameCount
      self.checksum = checksum
    }
  }

  /// Its number, from 1.
  ///
  /// 0 says that no footer was found, and that everything else here was counted by walking the
  /// file.
  public let number: UInt64
  /// Where the footer begins.
  public let footerOffset: UInt64
  /// Where the footer before it begins; nil in generation 1.
  public let previousFooterOffset: UInt64?
  /// The file up to and including the footer: what may be relied on.
  public let committedLength: UInt64
  /// How many sections the file holds.
  public let sectionCount: UInt64
  /// The length of the CAR that the file decompresses to, header included.
  public let streamLength: UInt64
  /// The newest manifest; nil while there is none.
  public let head: Head?
  /// The index, in order of ordinals.
  public let segments: [Segment]
  /// The format's minor version, by which the file was written.
  public let minorVersion: UInt16
  /// The feature bits.
  public let features: FeatureFlags

  /// A generation.
  public init(
    number: UInt64, footerOffset: UInt64, previousFooterOffset: UInt64?, committedLength: UInt64,
    sectionCount: UInt64, streamLength: UInt64, head: Head?, segments: [Segment],
    minorVersion: UInt16 = Footer.minorVersion, features: FeatureFlags = FeatureFlags()
  ) {
    self.number = number
    self.footerOffset = footerOffset
    self.previousFooterOffset = previousFooterOffset
    self.committedLength = committedLength
    self.sectionCount = sectionCount
    self.streamLength = streamLength
    self.head = head
    self.segments = segments
    self.minorVersion = minorVersion
    self.features = features
  }
}

extension Generation {
  /// What is committed in a file without anything in it.
  static let none = Generation(
    number: 0, footerOffset: 0, previousFooterOffset: nil, committedLength: 0, sectionCount: 0,
    streamLength: 0, head: nil, segments: [])
}
