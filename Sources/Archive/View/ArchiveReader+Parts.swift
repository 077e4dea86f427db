extension ArchiveReader {
  /// The archives that lie in the file, one after the other, by surveys of all of them; nearly
  /// always one.
  ///
  /// - Throws: ``ArchiveError`` if one cannot be read.
  package func parts() throws -> [ArchiveReader] {
    let reader = try surveyed()
    guard let survey = reader.survey ?? reader.tail, survey.start == 0 else { return [reader] }
    let beginnings = file.withBytes { bytes in survey.beginnings(in: bytes) }
    guard beginnings != [0] else { return [reader] }
    return try zip(beginnings, beginnings.dropFirst() + [file.count]).map { start, end in
      try ArchiveReader(MappedFile(file, part: start..<end), limits: limits).surveyed()
    }
  }
}
