internal import ATProtocol
internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// A repository that is what it should be, on its way into a snapshot.
struct FoundRepository: Sendable {
  /// How it is at hand.
  enum Content: Sendable {
    /// As a CAR, all of which was inspected.
    case whole(CheckedRepository)
    /// By how it differs from the snapshot that the archive has.
    case changes(RepositoryChanges)
  }

  /// How it is at hand.
  let content: Content
  /// How a server gave it.
  let origin: Snapshot.Fetched

  /// A repository that came like this.
  init(_ content: Content, origin: Snapshot.Fetched) {
    (self.content, self.origin) = (content, origin)
  }

  /// What its manifest says of it.
  var facts: RepositoryFacts {
    switch content {
    case .whole(let repository): RepositoryFacts(repository.inspection, repository.commit)
    case .changes(let changes): changes.facts
    }
  }

  /// How many bytes there were to look at.
  var byteCount: Int {
    switch content {
    case .whole(let repository): Int(clamping: repository.byteCount)
    case .changes(let changes): changes.byteCount
    }
  }

  /// The header of its CAR, with its length in front.
  var header: [UInt8] {
    switch content {
    case .whole(let repository): repository.header
    case .changes(let changes): changes.header
    }
  }

  /// Appends the blocks that an archive does not have; answers what the manifest says of the CAR.
  func pack(into writer: inout ArchiveWriter, after base: ArchivedSnapshot?) throws
    -> Snapshot.CARDescription
  {
    switch content {
    case .whole(let repository):
      try repository.pack(into: &writer, after: base)
    case .changes(let changes): try changes.pack(into: &writer)
    }
  }

  /// Sets the blobs that records refer to, and that a server lists, against what an archive holds.
  func reconcile(
    _ listing: BlobListing?, _ archive: ArchiveReader, after base: ArchivedSnapshot?,
    _ schedule: RetrySchedule
  ) throws -> BlobReconciliation {
    switch content {
    case .whole(let repository):
      try BlobReconciliation(
        repository.inspection.blobs, inCAR: repository.lengthOfBlock, listing: listing,
        archive: archive, base: base, schedule: schedule)
    case .changes(let changes):
      try changes.reconcile(listing, archive, schedule)
    }
  }
}
