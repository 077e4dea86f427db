/// A description of the archive for people, right after frame 0: a skippable frame of plain English
/// (FORMAT 4.4).
///
/// Its text is part of the format, so that it has only one form, and a damaged one can be made
/// again. Readers skip it.
package enum ArchiveNote {
  /// The text, in ASCII: M cannot occur in it.
  package static let text = """

    This file is a carpack archive (format version 1): one or more accounts of
    AT Protocol (Bluesky) with their posts, pictures and history.
    "zstd -dc FILE" (zstd: RFC 8878) gives a CAR v1 file with everything in it:
    records as DAG-CBOR, pictures and videos byte for byte.
    The format is described in Docs/FORMAT.md of the program carpack.

    """

  /// All bytes of the frame.
  package static let frame: [UInt8] = {
    let length = text.utf8.count
    var bytes = SkippableFrame.header(SkippableFrame.note, payloadLength: length) ?? []
    bytes.append(contentsOf: text.utf8)
    bytes.append(littleEndian: XXH64.hash(bytes.span))
    return bytes
  }()
}
