package import Files
package import IPLD
package import Snapshots

/// When the records of a snapshot were made, and its blobs: those have the time of the record that
/// refers to them first.
///
/// Records are taken in the order of the tree; blobs are asked about afterwards.
package struct SnapshotDates {
  private let times: RecordTimes
  private var notes: BlobNotes

  /// The dates of a snapshot, of which no record has been taken yet.
  package init(of snapshot: Snapshot) {
    times = RecordTimes(of: snapshot)
    notes = BlobNotes(times, hasNames: false)
  }

  /// Takes in a record, and answers when it was made.
  ///
  /// - Parameters:
  ///   - key: its key in the tree.
  ///   - body: its block; empty if that is not there.
  package mutating func add(_ key: [UInt8], _ body: Span<UInt8>) -> FileTime? {
    notes.add(key, body)
    return times.time(of: key, createdAt: Self.createdAt(in: body))
  }

  /// What a record says of when it was made; nil if it does not, or cannot be read.
  static func createdAt(in body: Span<UInt8>) -> String? {
    do throws(DAGCBORError) {
      return try DAGCBORDecoder.decode(body)["createdAt"]?.string
    } catch {
      // It has the time of its key.
      return nil
    }
  }

  /// When a record was made.
  package func time(of key: [UInt8], createdAt: String?) -> FileTime? {
    times.time(of: key, createdAt: createdAt)
  }

  /// When the record was made that refers to a blob first.
  package func time(of cid: CID, record: [UInt8]?) -> FileTime? {
    notes.time(of: cid, record: record)
  }
}
