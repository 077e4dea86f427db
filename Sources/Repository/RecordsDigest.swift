package import IPLD

/// The SHA-256 over the lines `collection/rkey CID` of all records, which come sorted from a walk.
package final class RecordsDigest {
  private var hash = SHA256()
  /// The first line.
  package private(set) var first: String?
  private var line: [UInt8] = []

  /// A digest without records.
  package init() {}

  /// The last line.
  package var last: String? {
    line.isEmpty ? nil : String(decoding: line.dropLast(), as: UTF8.self)
  }

  /// Adds the record that the walk has come to.
  package func append(_ record: RepositoryInspection.Record) {
    line.removeAll(keepingCapacity: true)
    line += record.key
    line.append(UInt8(ascii: " "))
    record.cid.appendText(to: &line)
    line.append(UInt8(ascii: "\n"))
    if first == nil { first = last }
    let bytes = line
    hash.update(bytes.span)
  }

  /// Ends it.
  package func finish() -> SHA256Digest { hash.finish() }
}
