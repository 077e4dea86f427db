internal import IPLD

/// The totals of a repository's blobs: all of them, or some.
extension BlobTable {
  /// The sum of the declared sizes, or the greatest number there is: records may say anything.
  package func declaredByteCount(where isMeant: (Entry) -> Bool = { _ in true }) -> Int {
    entries.lazy.filter(isMeant).reduce(0) { total, entry in
      let (sum, overflow) = total.addingReportingOverflow(entry.size ?? 0)
      return overflow ? .max : sum
    }
  }

  /// Their CIDs, sorted as text.
  package func sortedCIDs(where isMeant: (Entry) -> Bool) -> [String] {
    entries.lazy.filter(isMeant).map { "\($0.cid)" }.sorted()
  }

  /// The SHA-256 over their CIDs, sorted as text, one a line.
  package func digestOfCIDs(where isMeant: (Entry) -> Bool) -> String {
    var hash = SHA256()
    for cid in sortedCIDs(where: isMeant) { hash.update(Array("\(cid)\n".utf8).span) }
    return "\(hash.finish())"
  }
}
