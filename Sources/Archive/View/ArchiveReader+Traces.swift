/// What a file shows of an archive before a reader of it is made.
extension ArchiveReader {
  /// What the last footer that holds says, of those that begin before a place; nil if there is
  /// none.
  package static func lastGeneration(of file: MappedFile, before end: Int = .max) throws
    -> Generation?
  {
    let end = min(end, file.count)
    return try file.withBytes(reading: [Footer.place(atEndOf: end)]) { (bytes) throws in
      let atEnd = Footer.frame(bytes, endingAt: end)
      return try (atEnd ?? Footer.last(in: bytes, before: end, willSearch: file.willSearch))
        .map {
          (frame) throws in try Footer.read(bytes, frame)
        }
    }
  }

  /// Whether the last bytes of a file are a footer, as far as its form goes.
  package static func hasFooter(atEndOf file: MappedFile) -> Bool {
    file.withBytes(reading: [Footer.place(atEndOf: file.count)]) { bytes in
      Footer.frame(bytes, endingAt: bytes.count) != nil
    }
  }

  /// Whether a file begins as an archive does, or holds the magic of its index and footers (FORMAT
  /// 3.3).
  ///
  /// Other files have neither, except by intent. Where both are lost, nothing of an archive can be
  /// found by its form.
  package static func hasTraces(in file: MappedFile) -> Bool {
    file.withBytes { bytes in
      // An error here says only that no frame with a header begins the file.
      (try? DataFrame.carHeader(in: bytes)) != nil || ArchiveMagic.next(in: bytes) != nil
    }
  }

  /// Whether the file has a footer, also of a later version: one of an archive as it is. (Its magic
  /// is in the parity of others, too.)
  static func hasFooter(in file: MappedFile) -> Bool {
    file.withBytes { Footer.last(in: $0, before: file.count, willSearch: file.willSearch) != nil }
  }
}
