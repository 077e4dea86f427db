internal import ATProtocol
internal import Archive
internal import IPLD

/// Tells whether a manifest says something that no other says: one that was made again differs only
/// in the manifest before it and in where its blocks lie.
struct ManifestContents {
  private let reader: ArchiveReader
  /// The manifests of each commit whose contents have not been read.
  private var unread: [CID: [(manifest: CID, isSound: Bool)]] = [:]
  /// Whether the chain of a manifest with this content leads to its beginning.
  private var contents: [IPLDMap: Bool] = [:]

  package init(_ reader: ArchiveReader) { self.reader = reader }

  mutating func note(_ manifest: CID, _ commit: CID, isSound: Bool = false) {
    unread[commit, default: []].append((manifest, isSound))
  }

  /// Whether the chain of a manifest that says the same leads to its beginning; nil if none says
  /// the same.
  mutating func same(as manifest: CID, _ commit: CID) -> Bool? {
    for (other, isSound) in unread.removeValue(forKey: commit) ?? [] {
      if let content = content(other) { contents[content] = contents[content] ?? false || isSound }
    }
    // Of what cannot be read, nothing is the same.
    return content(manifest).flatMap { contents[$0] }
  }

  private func content(_ manifest: CID) -> IPLDMap? {
    do {
      return try ManifestMap(ArchivedSnapshot(manifest, in: reader)).content
    } catch {
      return nil
    }
  }
}
