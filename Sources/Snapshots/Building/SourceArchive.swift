package import Archive
package import Files
internal import IPLD

/// An archive whose snapshots are about to be pruned or copied into another.
///
/// A damaged archive is refused, except by salvage, which says what is lost: a copy made around
/// damage would look as if nothing had ever been there.
package struct SourceArchive: Sendable {
  /// Its name in messages.
  package let name: String
  /// The archive.
  package let reader: ArchiveReader
  /// All of its snapshots.
  package let history: SnapshotHistory

  /// Checks an archive as far as opening it allows.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - name: its name in messages.
  ///   - allowsTail: whether bytes may follow the last footer. They may be a committed snapshot
  ///     whose footer is damaged, which only a writer that opens the archive can tell.
  /// - Throws: `ArchiveError` if another archive begins in the file;
  ///   ``BackupError/damagedArchive(_:_:)`` or ``BackupError/unfinishedArchive(_:_:)``;
  ///   ``SnapshotError`` if there is no snapshot, or a manifest is of a later version.
  package init(_ reader: ArchiveReader, name: String, allowsTail: Bool = false) throws {
    self.name = name
    history = try SnapshotHistory(of: reader)
    self.reader = history.reader
    try reader.refuseFurtherArchives()
    try checkIndex()
    if let damage = reader.recovery?.damagedEnd {
      throw BackupError.damagedArchive(name, "\(damage)")
    }
    if let tail = reader.recovery?.interruptedTail, tail > 0, !allowsTail {
      throw BackupError.unfinishedArchive(name, tail)
    }
    if let broken = history.breaks.first {
      if case .unusableManifest(_, let error) = broken.reason {
        switch error {
        case .unknownVersion, .unknownOrder: throw error
        default: break
        }
      }
      throw BackupError.damagedArchive(name, "\(broken)")
    }
    guard !history.entries.isEmpty else { throw SnapshotError.noSnapshot }
  }

  /// An archive that may be damaged, for salvage and for naming snapshots that were found.
  package init(damaged reader: ArchiveReader, _ history: SnapshotHistory) {
    name = "the archive"
    (self.reader, self.history) = (reader, history)
  }

  /// Refuses an archive whose index was rebuilt, which reading may do at any time.
  package func checkIndex() throws(BackupError) {
    switch reader.recovery?.rebuild {
    case nil: break
    case .noFooter: throw .damagedArchive(name, "it has no valid footer, so its end is lost")
    case .damagedIndex(let offset):
      throw .damagedArchive(name, "its index is damaged, at byte \(offset)")
    }
  }

  /// Compares all committed bytes with their checksums.
  ///
  /// What follows them is left to a writer that opens the archive.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)``.
  package func verifyChecksums() throws {
    let found = try reader.verify(.quick)
    let damage = found.findings.first {
      $0.severity == .damaged && $0.error.offset ?? 0 < reader.generation.committedLength
    }
    if let damage { throw BackupError.damagedArchive(name, "\(damage)") }
  }

  /// Reads from this archive.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` in place of an error about what was read; any
  ///   other as it is.
  package func reading<Value>(_ body: () throws -> Value) throws -> Value {
    try onDamage({ .damagedArchive(name, $0) }, body)
  }

  /// Reads from this archive; nil where it is damaged, if that is tolerated.
  ///
  /// - Throws: as ``reading(_:)`` does.
  package func reading<Value>(toleratesDamage: Bool, _ body: () throws -> Value) throws -> Value? {
    toleratesDamage ? try unlessDamaged(body) : try reading(body)
  }
}
