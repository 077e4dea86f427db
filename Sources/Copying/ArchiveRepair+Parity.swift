package import Archive
internal import Files
package import SystemPackage

/// Putting the bytes of a protected archive back into their places.
extension ArchiveRepair {
  /// Writes an archive anew of which bytes were inserted or lost, if parity can heal all of it.
  ///
  /// The new file lies beside the old one, and replaces that when it has been healed and verified.
  ///
  /// - Parameters:
  ///   - path: The archive; of a link, the file it leads to.
  ///   - limits: How much it may hold.
  ///   - willWrite: Receives the name of a temporary file once it is there.
  /// - Throws: `ArchiveError` if the library for parity is not there, another process writes to the
  ///   archive, or it cannot be written; ``BackupError``.
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
      let target = try AtomicFile(AtomicFile.resolved(path), replacing: true)
      return try target.orDiscard {
        let new = try target.archiveStorage(of: [ArchiveReader(file, ignoresTail: true)])
        willWrite(target.temporaryPath)
        try alignment.write(to: new)
        _ = try ParityHealing.heal(new, limits: limits)
        let reader = try ArchiveReader(new.map(), limits: limits)
        guard try reader.verify(.full).isIntact, try alignment.losesNothing(to: reader),
          try old.size == UInt64(file.count), try old.isInPlace
        else {
          target.discard()
          return 0
        }
        try target.takeMode(of: path)
        try target.publish()
        return alignment.bytesMoved
      }
    }
  }
}
