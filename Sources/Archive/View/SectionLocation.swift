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
  /// That frame: a pack, or the first of those that it has for itself.
  let frame: DecodedFrame
  /// Its number among the sections that begin there.
  let number: Int

  /// The frame in which it begins, as the table has it.
  var entry: FrameEntry {
    get throws {
      try reader.withFile { (file) in reader.index.entry(at: position, in: file) }
    }
  }

  var section: Section {
    Section(ordinal: asked, cid: prefix.cid, bodyLength: prefix.bodyLength)
  }
}
