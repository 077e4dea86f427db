/// How many records of a repository cannot be read: they are not DAG-CBOR, or nested too deep.
///
/// Their bytes are kept, and searched for blob references anyway, by the general rules of CBOR.
package struct UnreadableRecords: Equatable, Sendable {
  /// How many records there are.
  package var count = 0
  /// How many of them could not be searched to their end, so that they may refer to blobs that are
  /// not known.
  package var partlySearchedCount = 0

  /// Such records, none at first.
  package init(count: Int = 0, partlySearchedCount: Int = 0) {
    self.count = count
    self.partlySearchedCount = partlySearchedCount
  }

  /// Adds others, or removes them if `sign` is −1.
  package mutating func add(_ others: UnreadableRecords, times sign: Int = 1) {
    count += sign * others.count
    partlySearchedCount += sign * others.partlySearchedCount
  }

  /// Whether there are blobs that may not be known.
  package var mayHideBlobs: Bool { partlySearchedCount > 0 }

  /// The text for people; nil if every record can be read.
  package var sentence: String? {
    guard count > 0 else { return nil }
    let subject = count == 1 ? "1 record" : "\(count) records"
    switch partlySearchedCount {
    case 0: return "\(subject) cannot be read; every blob reference in the bytes was found"
    case count:
      return "\(subject) cannot be read and may refer to blobs that are not known"
    default:
      return
        "\(subject) cannot be read, \(partlySearchedCount) of which may refer to blobs that are not known"
    }
  }
}
