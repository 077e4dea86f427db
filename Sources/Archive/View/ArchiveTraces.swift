internal import IPLD

/// What shows that a file is an archive, or was one before it was damaged.
package enum ArchiveTraces {
  /// Whether a file begins as an archive does, or holds the magic of its index and footers (FORMAT
  /// 3.3).
  ///
  /// Other files have neither, except by intent. Where both are lost, nothing of an archive can be
  /// found by its form.
  package static func are(in file: MappedFile) -> Bool {
    file.withBytes { bytes in hasHeader(bytes) || ArchiveMagic.next(in: bytes) != nil }
  }

  /// Whether frame 0 is one that holds a CAR header.
  private static func hasHeader(_ file: Span<UInt8>) -> Bool {
    // An error here says only that no frame begins here.
    guard let frame = try? DataFrame(file, at: 0, limit: file.count), frame.isRaw,
      RawFrame.checksumHolds(of: frame, in: file)
    else { return false }
    let content = RawFrame.content(of: frame, in: file)
    var offset = 0
    guard case .value(let length) = Varint.read(content.span, at: &offset) else { return false }
    return length == UInt64(content.count - offset)
  }
}

extension ArchiveReader {
  /// Whether anything is committed, or anything behind the header holds: a loss of power during the
  /// first write leaves neither.
  package var hasContent: Bool { generation.number > 0 || (survey ?? tail)?.hasContent == true }
}
