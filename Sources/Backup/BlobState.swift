internal import Archive
public import IPLD

/// How a blob that a record refers to stands in the archive.
public enum BlobState: Equatable, Sendable {
  /// It is there, so many bytes of it.
  case held(UInt64)
  /// It is not there.
  case missing
  /// What is there is damaged, and how.
  case damaged(String)
}

extension ArchivedSnapshot {
  /// How many blobs stand in the archive, looked up in the order of the file, so that each frame is decompressed once.
  ///
  /// - Throws: `ArchiveError` if the file cannot be read.
  /// - Returns: The state of each, in the order of `blobs`.
  public func states(of blobs: [CID]) throws -> [BlobState] {
    try reader.states(blobs.count) { blobs[$0] }.map { state in
      switch state {
      case .held(_, let length): .held(length)
      case .missing: .missing
      case .damaged(let error): .damaged("\(error)")
      }
    }
  }

  /// How a blob stands in the archive.
  public func state(of blob: CID) -> BlobState {
    do {
      return try reader.section(of: blob).map { .held($0.bodyLength) } ?? .missing
    } catch {
      return .damaged("\(error)")
    }
  }
}

extension ArchiveStorage {
  /// How many sections of the archive that this is do not hold by the checksums of what is stored,
  /// and were not written again.
  ///
  /// - Throws: `ArchiveError` if the file cannot be read.
  func damagedSectionCount() throws -> Int {
    let reader = try ArchiveReader(map(), ignoresTail: true)
    return try reader.damagedSections().reduce(0) { $0 + $1.count }
  }
}
