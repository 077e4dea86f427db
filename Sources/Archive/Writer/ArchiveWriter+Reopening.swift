internal import IPLD

/// Opening an archive that has begun.
extension ArchiveWriter {
  /// Writes frame 0 and the note of a new archive, or continues one that has begun.
  ///
  /// What an interrupted write has left is adopted first (see ``TailAdoption``), so that the file
  /// ends with a footer, or with frame 0.
  static func begin(
    _ storage: any ArchiveStorage, _ carHeader: [UInt8], _ options: ArchiveOptions,
    _ choose: TailChoice? = nil
  ) throws -> ArchiveWriter {
    // What cannot be protected is not begun.
    if options.parity != nil { try requireParityLibrary() }
    guard try storage.size > 0 else {
      var stored: [UInt8] = []
      DataFrame.appendRaw(carHeader.span, to: &stored)
      var log = FrameLog(storage: storage, end: 0, streamLength: UInt64(carHeader.count))
      stored += ArchiveNote.frame
      try log.append(stored.span)
      // An interrupted write can only be resumed if its header is on the medium.
      try storage.synchronize()
      return ArchiveWriter(log: log, committed: nil, options: options)
    }
    // The writer before may have stopped before its footer was synced. The footer has to be on the
    // medium before anything after it.
    try storage.synchronize()
    var file = try storage.map()
    var reader = try committed(of: file)
    if reader?.generation.features.isProtected == true || file.source?.parityPercent != nil {
      try requireParityLibrary()
    }
    if let damage = try file.damagedEnd(behind: reader?.generation) {
      guard options.appendsBehindDamage, let reader else { throw damage }
      var adoption = TailAdoption(storage: storage, file: file, committed: reader, choose: choose)
      adoption.damageEnd = UInt64(file.count)
      return try continued(behind: adoption, reader, carHeader, options)
    }
    let adopted = try TailAdoption(
      storage: storage, file: file, committed: reader, choose: choose
    ).run(carHeader: carHeader).sectionCount
    // Or between the footer and what has it count.
    try storage.commit()
    if reader.map({ $0.generation.committedLength < UInt64(file.count) }) ?? true {
      file = try storage.map()
      reader = try committed(of: file)
    }
    var log = FrameLog(
      storage: storage, end: reader?.generation.committedLength ?? UInt64(file.count),
      streamLength: reader?.generation.streamLength ?? UInt64(carHeader.count))
    // What is left of an archive in which nothing was committed is frame 0: its note was cut off.
    if reader == nil {
      let note = ArchiveNote.frame
      try log.append(note.span)
    }
    var writer = ArchiveWriter(log: log, committed: reader, options: options)
    writer.adoptedSectionCount = adopted
    return writer
  }

  /// Continues an archive behind an end that is damaged, of which everything whole is adopted, and
  /// nothing is cut off or made void.
  private static func continued(
    behind adoption: TailAdoption, _ committed: ArchiveReader, _ carHeader: [UInt8],
    _ options: ArchiveOptions
  ) throws -> ArchiveWriter {
    let storage = adoption.storage
    var (adopted, reader) = (UInt64(0), committed)
    do {
      adopted = try adoption.run(carHeader: carHeader).sectionCount
      try storage.commit()
      reader = try self.committed(of: storage.map()) ?? committed
    } catch let error as ArchiveError where error.reason == .damagedFooter {
      // What of it counts cannot be told.
    }
    let log = try FrameLog(
      storage: storage, end: storage.size, streamLength: reader.generation.streamLength)
    var writer = ArchiveWriter(log: log, committed: reader, options: options)
    writer.require(FeatureFlags.repaired)
    (writer.damageEnd, writer.adoptedSectionCount) = (log.end, adopted)
    return writer
  }

  /// What is committed in a file; nil if nothing is.
  ///
  /// - Throws: ``ArchiveError`` if an index segment does not hold: nothing can be appended then.
  static func committed(of file: MappedFile) throws -> ArchiveReader? {
    guard let generation = try ArchiveReader.lastGeneration(of: file) else { return nil }
    let reader = try ArchiveReader(file, committed: generation)
    if let segment = try reader.firstDamagedSegment {
      throw ArchiveError(
        .damagedIndex("nothing is appended to the archive"), at: segment.frame.offset)
    }
    return reader
  }

  /// Empties a file that nothing can be appended to, or that is the archive of another repository.
  static func startOverIfNeeded(_ storage: any ArchiveStorage, _ carHeader: [UInt8]) throws {
    guard try storage.size > 0 else { return }
    let file = try storage.map()
    do {
      try file.refuseFurtherArchives()
      let frame = try file.withBytes(reading: []) { (bytes) throws in
        file.willReadHeader(in: bytes)
        return try beginning(of: bytes, carHeader: carHeader)
      }
      let reader = try committed(of: file)
      if reader == nil, try storage.size > frame.end {
        if let damage = try file.damagedEnd(behind: nil) { throw damage }
        // Throws if nothing can be appended after these bytes.
        _ = try TailAdoption(storage: storage, file: file, committed: nil)
          .run(carHeader: carHeader)
      }
    } catch let error as ArchiveError
      where error.faultKind != .system && error.reason != .furtherArchive
    {
      try storage.truncate(to: 0)
    }
  }

  /// Frame 0 of an archive, if it holds this header.
  private static func beginning(of file: Span<UInt8>, carHeader: [UInt8]) throws(ArchiveError)
    -> DataFrame
  {
    guard let (frame, content) = try? DataFrame.carHeader(in: file) else {
      throw ArchiveError(.notAnArchive)
    }
    guard content == carHeader else { throw ArchiveError(.begunOtherwise) }
    return frame
  }
}
