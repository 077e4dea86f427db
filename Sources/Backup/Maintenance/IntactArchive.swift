public import Archive
internal import IPLD

/// An archive that is going to be copied, forgotten from or merged: one that nothing is known to be wrong with.
///
/// What is damaged is repaired first, and by a tool that says what is lost; whoever copies around damage makes it look as if nothing had ever been there.
public struct IntactArchive: Sendable {
  /// What a message calls it.
  public let name: String
  /// The archive.
  public let reader: ArchiveReader
  /// All of its snapshots.
  public let history: SnapshotHistory

  /// An archive, as far as opening it tells.
  ///
  /// Behind the last footer there may be what a write has left that was interrupted, or is under way; but if a footer was damaged, what it committed.
  /// Only a writer that opens the archive can tell.
  ///
  /// - Parameters:
  ///   - reader: the archive.
  ///   - name: what a message calls it.
  ///   - allowsTail: whether something may follow what is committed, because nothing of it can be lost by what is going to be done.
  /// - Throws: ``BackupError/damagedArchive(_:_:)``; ``SnapshotError`` if there is no snapshot, or a manifest is of a later version.
  public init(_ reader: ArchiveReader, name: String, allowsTail: Bool = false) throws {
    self.name = name
    self.reader = reader
    history = try SnapshotHistory(of: reader)
    try checkIndex()
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

  /// Refuses an archive that could be read only because its index was made again, also if that shows later.
  func checkIndex() throws(BackupError) {
    switch reader.recovery?.rebuild {
    case nil: break
    case .noFooter: throw .damagedArchive(name, "no footer holds, so its end is lost")
    case .damagedIndex(let offset):
      throw .damagedArchive(name, "its index is damaged, at byte \(offset)")
    }
  }

  /// Does something that reads this archive, so that what is found to be damaged is said to be so here.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` in place of an error that is about what was read; any other as it is.
  func reading<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as ArchiveError where error.reason.isDamage {
      throw BackupError.damagedArchive(name, "\(error)")
    } catch let error as SnapshotError {
      throw BackupError.damagedArchive(name, "\(error)")
    }
  }
}

extension ArchiveError.Reason {
  /// Whether it says that bytes which were read are not what they have to be.
  var isDamage: Bool {
    switch self {
    case .truncated, .noFooter, .damagedFooter, .notAnArchive, .malformedFooter, .damagedIndex,
      .malformedFrame, .damagedFrame, .malformedSection, .damagedSection, .repeatedSection,
      .unknownOrdinal, .lostSection, .bodyTooLarge:
      true
    default: false
    }
  }
}
