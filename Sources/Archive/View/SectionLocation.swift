/// A section that has been found: where it begins, and what is needed to read it.
struct SectionLocation {
  /// Its number, under which its frames stand in the table.
  let ordinal: UInt64
  /// The number that was asked for: another one if that section is damaged, and this one supersedes
  /// it.
  var asked: UInt64
  /// Its prefix.
  let prefix: SectionPrefix
  /// The reader by whose index it was found, which ``position`` belongs to.
  let reader: ArchiveReader
  /// The frame in which it begins.
  let position: ArchiveIndex.Position
  /// Where its bytes are.
  let body: Body

  /// Where the bytes of a section are.
  enum Body {
    /// In a decompressed pack, as the section with this number in it.
    case pack(DecodedFrame, index: Int)
    /// In frames of its own, of which this is the first; its content, if it had to be decompressed
    /// to read the prefix.
    case frames(first: DataFrame, content: [UInt8]?)
  }

  /// The frame in which it begins, as the table has it.
  var entry: FrameEntry {
    get throws {
      try reader.withFile { (file) in reader.index.entry(at: position, in: file) }
    }
  }

  /// The index that led to it.
  var index: ArchiveIndex { reader.index }

  var section: Section {
    Section(ordinal: asked, cid: prefix.cid, bodyLength: prefix.bodyLength)
  }
}
