internal import Synchronization
package import SystemPackage

/// A layer between a file and the archive in it: it handles files that hold an archive in another
/// form, such as sealed ones.
///
/// The code above it does not ask whether there is one. An archive is opened, read and written in
/// the same way with it and without.
package protocol StorageLayer: Sendable {
  /// Whether these are the first bytes of such a file.
  func knows(beginning: Span<UInt8>) -> Bool

  /// Whether these are the last bytes of such a file.
  func knows(end: Span<UInt8>) -> Bool

  /// Whether such a file is left of these bytes, neither the beginning nor the end of which tells
  /// it.
  func knows(remains file: MappedFile) -> Bool

  /// Where another archive begins in such a file, after the first, as far as can be told without a
  /// key; nil if none does.
  func furtherArchive(in file: MappedFile) -> Int?

  /// Where the first such archive begins among these bytes of a file, of which no archive is known;
  /// nil if none does.
  func beginning(in file: Span<UInt8>, among range: Range<Int>) -> Int?

  /// The archive that such a file holds, for reading.
  ///
  /// - Throws: ``ArchiveError`` if the file is damaged so that nothing can be read; what asking for
  ///   a key throws.
  func map(_ file: MappedFile) throws -> MappedFile

  /// The archive that such a file holds, for reading and writing.
  ///
  /// - Throws: as ``map(_:)`` does, and what the storage throws.
  func storage(in file: any ArchiveStorage) throws -> any ArchiveStorage

  /// How many bytes of such a file are committed, as far as can be told without a key; nil if none
  /// are.
  func committedLength(of file: MappedFile) -> UInt64?

  /// How many bytes at the beginning of such a file are written again, where all others stay.
  var rewrittenLength: Int { get }

  /// How many of the last bytes up to a place tell a state of such a file from all others, whoever
  /// may open it; nil if no state ends there.
  func endingLength(of file: MappedFile, at place: Int) -> Int?

  /// Which of two copies of such a file had who may open it changed more often.
  ///
  /// - Parameters:
  ///   - beginning: The first ``rewrittenLength`` bytes of the other one.
  ///   - file: The one.
  /// - Throws: what the layer throws of a file of a later version.
  func keyOrder(of beginning: [UInt8], to file: MappedFile) throws -> KeyOrder

  /// Makes who may open a file what was written most often: in it, or at the beginning of another
  /// copy of it. Takes no key.
  ///
  /// - Throws: ``ArchiveError`` if something in the file is damaged so that this has to be repaired
  ///   first; what the storage throws.
  func settleKeys(_ beginning: [UInt8], in file: any ArchiveStorage) throws

  /// What is wrong with such a file, as far as can be told without a key.
  ///
  /// - Throws: ``FetchFailure``.
  func flaws(of file: MappedFile) throws -> [ArchiveError]

  /// Heals what parity around the bytes of such a file can heal, without a key.
  ///
  /// - Parameter file: The file; it is locked.
  /// - Returns: How many bytes were written.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed; what the storage
  ///   throws.
  func heal(_ file: any ArchiveStorage) throws -> UInt64

  /// Writes what parity does not protect of such a file, and is whole somewhere in it, into another
  /// one, into which all else was put back.
  ///
  /// - Throws: what the storage throws.
  func restoreUnprotected(of old: MappedFile, in new: any ArchiveStorage) throws

  /// Whether the valid content of one such file is also in another, as far as can be told without a
  /// key.
  ///
  /// - Throws: ``FetchFailure``.
  func keepsAll(of old: MappedFile, in new: MappedFile) throws -> Bool

  /// The storage for a new archive.
  ///
  /// - Parameters:
  ///   - file: An empty file.
  ///   - archives: Those that it is made of: it is kept in the way that they are.
  ///   - recipients: Who may open it besides those that the layer knows.
  /// - Throws: as ``storage(in:)`` does; if the layer knows no recipient, and some are given.
  func storage(
    beginning file: any ArchiveStorage, of archives: [MappedFile], for recipients: [String]
  ) throws -> any ArchiveStorage
}

/// Which of two copies of one file had who may open it changed more often.
package enum KeyOrder: Sendable {
  /// Both say the same.
  case same
  /// The other copy: what it says counts.
  case otherIsNewer
  /// This one; or both as often, and not in the same way.
  case otherIsOlder
}

/// Why a layer does not open a file, whose bytes may be whole: a key is missing, for example.
package protocol StorageLayerError: ArchiveFileError {}

/// The layer of this process.
package enum StorageLayers {
  private static let installed = Mutex<(any StorageLayer)?>(nil)

  /// How many bytes at its beginning, or at its end, tell what a file is.
  package static let tellingLength = 4 << 10

  /// The layer; nil if none is installed.
  static var current: (any StorageLayer)? { installed.withLock { $0 } }

  /// Installs a layer for all archives that are opened from now on.
  package static func install(_ layer: any StorageLayer) { installed.withLock { $0 = layer } }

  /// The storage for a new archive: the file itself, unless the layer decides otherwise.
  ///
  /// - Parameters:
  ///   - file: An empty file.
  ///   - archives: Those that it is made of.
  ///   - recipients: Who may open it besides those that the layer knows.
  /// - Throws: as ``StorageLayer/storage(beginning:of:for:)`` does.
  package static func begin(
    in file: any ArchiveStorage, of archives: [MappedFile] = [], for recipients: [String] = []
  ) throws -> any ArchiveStorage {
    guard let layer = current else {
      precondition(recipients.isEmpty, "no layer that seals archives is installed")
      return file
    }
    return try layer.storage(beginning: file, of: archives, for: recipients)
  }

  /// The layer for a file with these first bytes; nil if there is none.
  static func layer(knowingBeginning bytes: Span<UInt8>) -> (any StorageLayer)? {
    guard let layer = current, layer.knows(beginning: bytes) else { return nil }
    return layer
  }

  /// The layer for a file with these last bytes; nil if there is none.
  package static func layer(knowingEnd bytes: Span<UInt8>) -> (any StorageLayer)? {
    guard let layer = current, layer.knows(end: bytes) else { return nil }
    return layer
  }
}

extension MappedFile {
  /// The archive that the file holds: the file itself, unless there is a layer for it.
  ///
  /// - Throws: as ``StorageLayer/map(_:)`` does.
  package func archive() throws -> MappedFile { try layer?.map(self) ?? self }

  /// The layer for the file; nil if the file is a plain archive.
  package var layer: (any StorageLayer)? {
    guard let layer = StorageLayers.current, isKnown(to: layer) else { return nil }
    return layer
  }

  /// Whether a layer is for the file.
  ///
  /// The first bytes tell it. The last ones do where those are damaged, or are not here: of a
  /// remote file, the end comes with the first answer. In an archive as it is the last bytes may
  /// have been chosen by others, so they are not asked where it begins as one. Where both are
  /// damaged, what lies between them tells, unless a footer of an archive as it is does.
  package func isKnown(to layer: any StorageLayer) -> Bool {
    let length = min(count, StorageLayers.tellingLength)
    if !lacks(0..<length) {
      let (isKnown, isPlain) = withBytes(reading: [0..<length]) { bytes in
        let beginning = bytes.extracting(0..<length)
        return (
          layer.knows(beginning: beginning), beginning.firstWord(at: 0) == DataFrame.zstdMagic
        )
      }
      if isKnown || isPlain { return isKnown }
    }
    let end = count - length..<count
    if withBytes(reading: [end], { layer.knows(end: $0.extracting(end)) }) { return true }
    return !isFetched && !ArchiveReader.hasFooter(in: self) && layer.knows(remains: self)
  }

  /// How many bytes are committed, by a footer or by the layer; nil if none are.
  ///
  /// - Throws: ``ArchiveError`` as `ArchiveReader.lastGeneration(of:)` does.
  package var committedLength: UInt64? {
    get throws {
      if let layer { return layer.committedLength(of: self) }
      return try ArchiveReader.lastGeneration(of: self)?.committedLength
    }
  }
}

extension ArchiveStorage {
  /// The archive that the file holds: the file itself, unless there is a layer for it.
  ///
  /// - Throws: as ``StorageLayer/storage(in:)`` does.
  package func archive() throws -> any ArchiveStorage {
    let file = try map()
    guard let layer = file.layer else { return self }
    return try file.refusingFurtherArchives { try layer.storage(in: self) }
  }
}

extension FileStorage {
  /// Opens the archive that a file holds, and locks it.
  ///
  /// - Throws: as ``open(_:)`` does, and ``StorageLayer/storage(in:)``.
  package static func openArchive(_ path: FilePath) throws -> any ArchiveStorage {
    do {
      return try open(path).archive()
    } catch let error as any ArchiveFileError {
      throw error.of(path.string)
    }
  }
}
