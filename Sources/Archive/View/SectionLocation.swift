/// A section that has been found: where it begins, and what is needed to read it.
struct SectionLocation {
  /// Its number, under which its frames stand in the table.
  let ordinal: UInt64
  /// The number that was requested: another one if that section is damaged, and this one supersedes
  /// it.
  var asked: UInt64
  /// Its prefix.
  let prefix: SectionPrefix
  /// The reader by whose index it was found, which ``row`` belongs to.
  let reader: ArchiveReader
  /// The frame in which it begins, as the table has it.
  let row: ArchiveIndex.Row
  /// That frame: a pack, or the first of those that it has for itself.
  let frame: DecodedFrame
  /// Its number among the sections that begin there.
  let number: Int

  var section: Section {
    Section(ordinal: asked, cid: prefix.cid, bodyLength: prefix.bodyLength)
  }
}
