internal import IPLD

/// What is noted of an archive beside it.
extension ArchiveReader {
  /// What the archive holds; nil if its newest manifest cannot be read.
  ///
  /// - Parameter old: what it held before, which mostly saves a walk along the chain of manifests.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  package func content(after old: WrittenSize.Content?) throws -> WrittenSize.Content? {
    guard let head = generation.head?.cid,
      let body = try body(of: head, limit: ManifestShape.maximumLength),
      let manifest = ManifestShape(head, body.span)
    else { return nil }
    let previous = manifest.previous.map { "\($0)" }
    let count =
      if let old, old.head == previous {
        old.snapshotCount.addingReportingOverflow(1).partialValue
      } else {
        try knownManifests().count
      }
    return WrittenSize.Content(
      head: "\(head)", madeAt: manifest.createdAt, snapshotCount: count)
  }
}
