internal import IPLD

/// The archives that lie in a file, one after the other; nearly always one (FORMAT 7.4).
package struct ArchiveParts: Sendable {
  /// An archive, and where it begins in the file.
  package typealias Part = (offset: UInt64, reader: ArchiveReader)
  /// Where an archive begins that cannot be opened, and why.
  package typealias Unopened = (offset: UInt64, error: any ArchiveFileError)

  /// Those that can be read, by surveys of all of them.
  package private(set) var readable: [Part] = []
  /// Those that cannot be opened: damaged ones, and those for which there is no key.
  package private(set) var unopened: [Unopened] = []

  private let limits: ArchiveLimits

  /// Finds the archives of a file.
  ///
  /// - Parameters:
  ///   - file: The file as it is kept.
  ///   - limits: How much each may hold.
  /// - Throws: Why none of them can be opened: ``ArchiveError`` or a ``StorageLayerError``; what
  ///   the system refuses.
  package init(of file: MappedFile, limits: ArchiveLimits = ArchiveLimits()) throws {
    self.limits = limits
    try add(file, at: 0)
    guard readable.isEmpty else { return }
    let missingKey = unopened.first { $0.error is any StorageLayerError }
    if let first = missingKey ?? unopened.first { throw first.error }
  }

  /// Adds what a part of the file holds, and what follows that.
  private mutating func add(_ file: MappedFile, at offset: Int) throws {
    guard let layer = file.layer else {
      return try opening(at: offset) { try $0.addPlain(file, at: offset, isStored: true) }
    }
    let further = layer.furtherArchive(in: file)
    try opening(at: offset) { parts in
      try parts.addPlain(layer.map(file.first(further)), at: offset, isStored: false)
    }
    if let further {
      try add(MappedFile(file, part: further..<file.count), at: offset + further)
    }
  }

  private mutating func opening(
    at offset: Int, _ body: (inout ArchiveParts) throws -> Void
  ) throws {
    do {
      try body(&self)
    } catch let error as any ArchiveFileError {
      if error.faultKind == .system { throw error }
      unopened.append((UInt64(offset), error))
    }
  }

  /// Adds a plain archive, and those that are glued to it.
  ///
  /// - Parameter isStored: Whether these are bytes of the file itself.
  private mutating func addPlain(_ file: MappedFile, at offset: Int, isStored: Bool) throws {
    let reader = try ArchiveReader(file, limits: limits).surveyed()
    let beginnings =
      (reader.survey ?? reader.tail).flatMap { survey in
        survey.start == 0 ? file.withBytes { survey.beginnings(in: $0) } : nil
      } ?? [0]
    guard beginnings != [0] else { return readable.append((UInt64(offset), reader)) }
    for (start, end) in zip(beginnings, beginnings.dropFirst() + [file.count]) {
      let part = MappedFile(file, part: start..<end)
      let place = isStored ? offset + start : offset
      if part.layer != nil, part.count < file.count {
        try add(part, at: place)
      } else {
        try opening(at: place) { parts in
          let reader = try ArchiveReader(part, limits: parts.limits).surveyed()
          parts.readable.append((UInt64(place), reader))
        }
      }
    }
  }
}

extension ArchiveReader {
  /// The archives that lie in the file.
  ///
  /// - Throws: as ``ArchiveParts/init(of:limits:)`` does.
  package func parts() throws -> ArchiveParts {
    try ArchiveParts(of: file.source?.stored ?? file, limits: limits)
  }

  /// Where another archive begins in the file, after this one, as far as opening it has shown; nil
  /// if none does.
  package var furtherArchive: UInt64? {
    if let place = file.source?.furtherArchive { return UInt64(place) }
    guard let survey = survey ?? tail else { return nil }
    let end = file.withBytes(reading: [survey.start..<file.count]) { survey.firstEnd(in: $0) }
    return end < file.count ? UInt64(end) : nil
  }

  /// Refuses a file in which another archive begins.
  ///
  /// - Throws: ``ArchiveError`` with the reason `furtherArchive`.
  package func refuseFurtherArchives() throws(ArchiveError) {
    if let furtherArchive { throw ArchiveError(.furtherArchive, offset: furtherArchive) }
  }
}

extension MappedFile {
  /// Opens the archive of a file that is going to be written to, or copied as a whole.
  ///
  /// - Throws: ``ArchiveError`` with the reason `furtherArchive` if another archive begins in it and
  ///   the layer does not open it; what `open` throws.
  package func refusingFurtherArchives<Value>(_ open: () throws -> Value) throws -> Value {
    do {
      return try open()
    } catch let error as any StorageLayerError {
      // A key would not help.
      try refuseFurtherArchives()
      throw error
    }
  }

  /// Refuses a file in which another archive begins, as far as can be told without a key.
  ///
  /// What is committed in a plain one is not read.
  ///
  /// - Throws: ``ArchiveError`` with the reason `furtherArchive`; what reading a plain one throws.
  package func refuseFurtherArchives() throws {
    if let layer {
      guard let place = layer.furtherArchive(in: self) else { return }
      throw ArchiveError(.furtherArchive, at: place)
    }
    let committed = try ArchiveReader.lastGeneration(of: self)
    guard committed.map({ $0.committedLength < UInt64(count) }) ?? true else { return }
    let survey = try Survey(self, after: committed, limits: ArchiveLimits(allowsLarge: true))
    try withBytes(reading: [survey.start..<count]) { bytes throws in
      try survey.refuseFurtherArchives(in: bytes)
    }
  }
}
