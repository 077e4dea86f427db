internal import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Snapshots
package import SystemPackage

/// Makes one archive of several: all of their snapshots, each section once.
///
/// Snapshots are ordered by the time they were made, and by archive where that is the same.
/// Snapshots that differ only in what comes before them, where their blocks lie and which of their
/// blobs are there are kept once. A blob that one archive lacks and another holds is held
/// afterwards, and the manifest says so.
extension ArchiveCopier {
  /// The result of merging.
  package struct MergeReport: Sendable {
    /// How many snapshots there are.
    package let snapshotCount: Int
    /// How many were in more than one archive.
    package let sharedCount: Int
    /// How many accounts there are.
    package let accountCount: Int
    /// How many bytes are committed in the archives, together.
    package let sourceSize: UInt64
    /// How many accounts have private data that was left out.
    package let withoutPrivateCount: Int
    /// What is in the new file.
    package let generation: Generation
  }

  /// Merges archives into a new one, and verifies it before it gets its name.
  ///
  /// - Parameters:
  ///   - archives: the archives, which are only read.
  ///   - target: the new one.
  ///   - keepsPrivateData: whether what is the owner's alone is kept; nil to keep it if all
  ///     snapshots are of one account.
  ///   - willWrite: receives the name of the temporary file once it is there.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if one of them is damaged;
  ///   ``BackupError/copyFailed(_:)`` if the new one is; `ArchiveError` if it cannot be written.
  package func merge(
    _ archives: [SourceArchive], to target: AtomicFile, keepsPrivateData: Bool? = nil,
    willWrite: (FilePath) -> Void = { _ in }
  ) throws -> MergeReport {
    let accounts = Set(archives.flatMap { $0.history.entries.map(\.did) })
    let keepsPrivateData = keepsPrivateData ?? (accounts.count == 1)
    let withoutPrivateCount =
      keepsPrivateData
      ? 0
      : Set(
        try archives.flatMap { (archive) in
          try archive.reading { try archive.reader.accountsWithPrivateData() }
        }
      ).count
    let (links, sharedCount) = try Self.order(archives, keepsPrivateData: keepsPrivateData)
    return try copy(
      links, of: archives, to: target, keepsPrivateData: keepsPrivateData, willWrite
    ) { generation, _ in
      try target.publishArchive()
      return MergeReport(
        snapshotCount: links.count, sharedCount: sharedCount,
        accountCount: accounts.count,
        sourceSize: archives.reduce(0) { $0 + $1.reader.generation.committedLength },
        withoutPrivateCount: withoutPrivateCount, generation: generation)
    }
  }

  /// All snapshots in their order, each once; and how many were found again.
  private static func order(_ archives: [SourceArchive], keepsPrivateData: Bool) throws
    -> ([ChainLink], shared: Int)
  {
    var places: [CID: Int] = [:]
    var sharedCount = 0
    var found: [(link: ChainLink, moment: Moment?, counts: (held: Int, accepted: Int))] = []
    for (source, archive) in archives.enumerated() {
      // A snapshot whose time cannot be read stays behind the one it followed.
      var latest: Moment?
      for entry in archive.history.entries {
        var snapshot = try archive.reading {
          try ArchivedSnapshot.manifest(entry.cid, in: archive.reader)
        }
        if !keepsPrivateData { snapshot.privateData = nil }
        let counts = (snapshot.blobs.held, snapshot.blobs.accepted)
        let content = try snapshot.content(countsBlobs: false)
        latest = entry.moment ?? latest
        if let place = places[content] {
          sharedCount += 1
          let isVouched = entry.isVouched || found[place].link.isVouched
          // The one that says more of its blobs stands for both.
          if found[place].counts < counts {
            found[place].link = ChainLink(entry, source: source)
            found[place].counts = counts
          }
          found[place].link.isVouched = isVouched
        } else {
          places[content] = found.count
          found.append((ChainLink(entry, source: source), latest, counts))
        }
      }
    }
    let order = found.indices.sorted { left, right in
      switch (found[left].moment, found[right].moment) {
      case (let first?, let second?):
        if first.begins(before: second) { return true }
        return !second.begins(before: first) && left < right
      case (nil, nil): return left < right
      // Nothing before it has a time, so it counts as the oldest.
      case (let first, _): return first == nil
      }
    }
    return (order.map { found[$0].link }, sharedCount)
  }
}
