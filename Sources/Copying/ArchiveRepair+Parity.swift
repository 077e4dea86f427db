package import Archive
internal import Files
package import SystemPackage

/// Putting the bytes of a protected archive back into their places.
extension ArchiveRepair {
  /// Heals what parity around the bytes of a file can heal, which takes no key: of a sealed
  /// archive.
  ///
  /// - Parameters:
  ///   - path: The archive; of a link, the file it leads to.
  ///   - willWrite: Receives the name of a temporary file once it is there.
  /// - Returns: How many bytes were written, or put back into their places.
  /// - Throws: As ``align(_:limits:willWrite:)`` does.
  package static func healStored(
    _ path: FilePath, willWrite: (FilePath) -> Void = { _ in }
  ) throws -> UInt64 {
    let file = try FileStorage.open(path)
    let map = try file.map()
    guard let layer = map.layer else { return 0 }
    try map.refuseFurtherArchives()
    let moved = try alignStored(path, file, map, layer, willWrite: willWrite)
    return try moved > 0 ? moved : layer.heal(file)
  }

  /// Writes a file anew of whose stored bytes some were inserted or lost, if parity can heal all of
  /// it.
  private static func alignStored(
    _ path: FilePath, _ file: FileStorage, _ map: MappedFile, _ layer: any StorageLayer,
    willWrite: (FilePath) -> Void
  ) throws -> UInt64 {
    guard let alignment = try ParityAlignment(map), alignment.report.isHealable else { return 0 }
    let isReplaced = try replace(path) { target in
      let new = try target.storage()
      willWrite(target.temporaryPath)
      try alignment.write(to: new)
      try layer.restoreUnprotected(of: map, in: new)
      _ = try layer.heal(new)
      return try layer.keepsAll(of: map, in: new.map()) && file.size == UInt64(map.count)
        && file.isInPlace
    }
    return isReplaced ? alignment.bytesMoved : 0
  }

  /// Writes an archive anew of which bytes were inserted or lost, if parity can heal all of it.
  ///
  /// The new file lies beside the old one, and replaces that when it has been healed and verified.
  ///
  /// - Parameters:
  ///   - path: The archive; of a link, the file it leads to.
  ///   - limits: How much it may hold.
  ///   - willWrite: Receives the name of a temporary file once it is there.
  /// - Throws: `ArchiveError` if the library for parity is not installed, another process writes to
  ///   the archive, or it cannot be written; ``BackupError``.
  /// - Returns: How many bytes were put back into their places; 0 if nothing was changed.
  package static func align(
    _ path: FilePath, limits: ArchiveLimits = ArchiveLimits(),
    willWrite: (FilePath) -> Void = { _ in }
  ) throws -> UInt64 {
    let old = try FileStorage.openArchive(path)
    return try withExtendedLifetime(old) {
      let file = try old.map()
      // What cannot be healed may still be of use where it is.
      guard let alignment = try ParityAlignment(file), alignment.report.isHealable else { return 0 }
      try file.refuseFurtherArchives()
      let isReplaced = try replace(path) { target in
        let new = try target.archiveStorage(of: [ArchiveReader(file, ignoresTail: true)])
        willWrite(target.temporaryPath)
        try alignment.write(to: new)
        _ = try ParityHealing.heal(new, limits: limits)
        let reader = try ArchiveReader(new.map(), limits: limits)
        return try reader.verify(.full).isIntact && alignment.losesNothing(to: reader)
          && old.size == UInt64(file.count) && old.isInPlace
      }
      return isReplaced ? alignment.bytesMoved : 0
    }
  }

  /// Writes a sealed archive anew of which pieces are lost, or do not lie where they belong; of one
  /// that has lost its last table alone, writes that.
  ///
  /// The new file lies beside the old one, and then replaces it.
  ///
  /// - Parameters:
  ///   - path: The archive; of a link, the file it leads to.
  ///   - willWrite: Receives the name of a temporary file once it is there.
  /// - Returns: What it has changed.
  /// - Throws: As ``align(_:limits:willWrite:)`` does.
  package static func putInOrder(
    _ path: FilePath, willWrite: (FilePath) -> Void = { _ in }
  ) throws -> PiecesChange {
    let before = FileStorage.size(of: path) ?? 0
    let old = try FileStorage.openArchive(path)
    return try withExtendedLifetime(old) {
      guard try old.isDisplaced else {
        try old.commit()
        try old.cutOffRest()
        let now = FileStorage.size(of: path) ?? 0
        return now == before ? .none : now < before ? .cutOff(before - now) : .end
      }
      let file = try old.map()
      let isReplaced = try replace(path) { target in
        let new = try target.storage()
        willWrite(target.temporaryPath)
        try old.putInOrder(in: new)
        guard try old.size == UInt64(file.count), try old.isInPlace else {
          throw ArchiveError(.changedMeanwhile)
        }
        return true
      }
      return isReplaced ? .all : .none
    }
  }

  /// What putting a sealed archive in order has changed.
  package enum PiecesChange: Equatable {
    case none
    /// So many bytes behind the last table, of which nothing could be read, were cut off.
    case cutOff(UInt64)
    /// The last table, or a piece inside which the file ended.
    case end
    /// The file was rewritten.
    case all
  }

  /// Puts a new file into the place of an archive.
  ///
  /// - Parameters:
  ///   - path: The archive; of a link, the file it leads to.
  ///   - write: Writes the new file, and says whether it may take the place.
  /// - Returns: Whether it did.
  private static func replace(_ path: FilePath, _ write: (AtomicFile) throws -> Bool) throws -> Bool
  {
    let target = try AtomicFile(AtomicFile.resolved(path), replacing: true)
    return try target.orDiscard {
      guard try write(target) else {
        target.discard()
        return false
      }
      try target.takeMode(of: path)
      try target.publish()
      return true
    }
  }
}
