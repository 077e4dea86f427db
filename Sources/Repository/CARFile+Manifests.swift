internal import Archive
internal import Files
package import IPLD

/// The content of an archive, decompressed, is a CAR whose root is the commit of the snapshot that
/// began it (FORMAT, appendix A): the manifests among its blocks tell of the others.
extension CARFile {
  /// How many manifests are examined.
  private static let maximumManifests = 1 << 17

  /// The commits of the snapshots of the archive whose content this is, the oldest first; none if
  /// it is not an archive's.
  ///
  /// Manifests that were made again are in it, too: of several chains it is the one that ends last.
  ///
  /// - Parameter inspection: what was found of the repository, none of whose blocks is a manifest.
  package func archivedCommits(besides inspection: RepositoryInspection) -> [CID] {
    let reached = inspection.reached
    guard inspection.commit != nil, inspection.unreachableBlockCount > 0 else { return [] }
    var (manifests, previous): ([CID: ManifestShape], Set<CID>) = ([:], [])
    var order: [CID] = []
    for start in starts where order.count < Self.maximumManifests {
      let (cid, number) = file.withBytes { bytes in
        let cid = CARSection.cid(at: Int(start), in: bytes)
        return (cid, blocks.place(of: cid, in: bytes))
      }
      guard let number, !reached.contains(number),
        let manifest = withBody(number, { ManifestShape(cid, $0) })
      else { continue }
      manifests[cid] = manifest
      order.append(cid)
      if let earlier = manifest.previous { previous.insert(earlier) }
    }
    var commits: [CID] = []
    var next = order.last { !previous.contains($0) }
    while let cid = next, let manifest = manifests.removeValue(forKey: cid) {
      commits.append(manifest.commit)
      next = manifest.previous
    }
    return commits.reversed()
  }
}
