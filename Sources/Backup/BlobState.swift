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
  /// - Returns: The state of each, in the order of `blobs`.
  public func states(of blobs: [CID]) -> [BlobState] {
    do {
      return try reader.matches(blobs.count) { blobs[$0] }
        .map { $0.map { .held($0.bodyLength) } ?? .missing }
    } catch {
      // With damage each is looked for by itself, to say which are lost.
      return blobs.map { state(of: $0) }
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
