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
  /// How a blob stands in the archive.
  public func state(of blob: CID) -> BlobState {
    do {
      return try reader.section(of: blob).map { .held($0.bodyLength) } ?? .missing
    } catch {
      return .damaged("\(error)")
    }
  }
}
