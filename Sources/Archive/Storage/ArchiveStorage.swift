/// The operations that a writer needs on its file.
///
/// ``FileStorage`` is the real one. Another lets a test fail a write, lose what was not synced, or
/// tear a sector.
package protocol ArchiveStorage: AnyObject, Sendable {
  /// How many bytes the file has.
  var size: UInt64 { get throws }

  /// Reads `count` bytes at `offset`.
  ///
  /// - Throws: what kept it from reading all of them; a file that ends first is an error.
  func read(_ count: Int, at offset: UInt64) throws -> [UInt8]

  /// Writes all of `bytes` at `offset`, which is never beyond the end of the file.
  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws

  /// Returns when everything written so far would survive a loss of power.
  func synchronize() throws

  /// Returns when a footer that was written last counts: as ``synchronize()`` does, and a reader
  /// finds it with few reads.
  func commit() throws

  /// Notes beside the file what it holds since the last ``commit()``, where that can be noted.
  ///
  /// - Parameter newest: Returns that, from what was noted before.
  func note(_ newest: (WrittenSize.Content?) -> WrittenSize.Content?) throws

  /// Returns when the file's name, too, would survive a loss of power.
  func synchronizeName() throws

  /// Truncates the file.
  func truncate(to size: UInt64) throws

  /// Cuts off what an interrupted write has left behind the archive and nothing can be read of.
  ///
  /// Whoever has mapped the file must not go on reading that.
  func cutOffRest() throws

  /// Keeps other writers away for as long as this object lives.
  ///
  /// - Throws: ``ArchiveError`` with the reason `locked` if one is there already.
  func lock() throws

  /// Lets other writers in.
  func unlock()

  /// Whether the file still has its name: it was neither moved nor replaced.
  var isInPlace: Bool { get throws }

  /// Makes the file readable by its owner only.
  func restrictToOwner() throws

  /// Whether a key is needed to read what is written.
  var isSealed: Bool { get }

  /// Whether parts of the file are lost or do not lie where they belong, so that it has to be
  /// rewritten before what is in it can be repaired.
  var isDisplaced: Bool { get throws }

  /// Writes such a file into an empty one, with its parts where they belong.
  ///
  /// What is damaged stays so, and what is lost does not become what was never written.
  func putInOrder(in new: any ArchiveStorage) throws

  /// Protects what is written from now on by parity around the bytes as they are stored.
  ///
  /// - Parameter percent: How much parity to write.
  /// - Returns: Whether there is such parity: otherwise the archive has its own.
  func keepParity(percent: Int) -> Bool

  /// Protects everything committed by such parity, and what is written from now on.
  ///
  /// - Returns: By how many bytes the file grew; nil if there is no such parity.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed.
  func protect(percent: Int) throws -> UInt64?

  /// The bytes as they are now, for reading.
  func map() throws -> MappedFile
}

extension ArchiveStorage {
  /// Only ``synchronize()``: a reader finds a footer at the end of a file.
  package func commit() throws { try synchronize() }

  /// Does nothing: there is no place for notes.
  package func note(_ newest: (WrittenSize.Content?) -> WrittenSize.Content?) throws {}

  /// Does nothing: what follows a plain archive is part of it.
  package func cutOffRest() throws {}

  /// Does nothing: bytes in memory have no file name.
  package func synchronizeName() throws {}

  /// Does nothing: no other process can open bytes in memory.
  package func unlock() {}

  /// Does nothing: no other user reads bytes in memory.
  package func restrictToOwner() throws {}

  /// False: bytes are written as they are.
  package var isSealed: Bool { false }

  /// False: bytes in memory do not move.
  package var isDisplaced: Bool { get throws { false } }

  /// Does nothing: bytes in memory do not move.
  package func putInOrder(in new: any ArchiveStorage) throws {}

  /// False: bytes are stored as they are.
  package func keepParity(percent: Int) -> Bool { false }

  /// Nil.
  package func protect(percent: Int) throws -> UInt64? { nil }

  /// True: bytes in memory have no file name that could change.
  package var isInPlace: Bool { get throws { true } }

  /// A copy of the bytes.
  ///
  /// - Throws: what reading throws.
  package func map() throws -> MappedFile {
    MappedFile(copying: try read(Int(try size), at: 0))
  }
}
