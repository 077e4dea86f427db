internal import ATProtocol
package import Files
internal import IPLD
internal import Repository
package import Snapshots

/// How many records and blobs a snapshot has, and their sizes, by collection, year and type.
package struct SnapshotStatistics: Sendable {
  /// A number of things and their bytes.
  package struct Amount: Equatable, Sendable {
    /// How many.
    package private(set) var count = 0
    /// How many bytes they have.
    package private(set) var bytes: UInt64 = 0

    fileprivate mutating func add(_ length: UInt64) { add(Amount(count: 1, bytes: length)) }

    fileprivate mutating func add(_ other: Amount) {
      count += other.count
      bytes = bytes.addingSaturated(other.bytes)
    }
  }

  /// All records.
  package private(set) var records = Amount()
  /// The records of each collection.
  package private(set) var collections: [String: Amount] = [:]
  /// The records that have a date, by its year.
  package private(set) var years: [Int: Amount] = [:]
  /// The records that have none.
  package private(set) var undated = Amount()
  /// All blobs that records refer to, by the lengths that are held, or else by the sizes that
  /// records declare.
  package private(set) var blobs = Amount()
  /// Of these, those that the archive does not hold.
  package private(set) var missing = Amount()
  /// The blobs of each media type, as records declare it.
  package private(set) var types: [String: Amount] = [:]
  /// Why the repository is damaged or incomplete; nil if it is not.
  package private(set) var flaw: String?
  /// Whether only the archive's index was searched for blobs, so that their sizes are those that
  /// records declare.
  package private(set) var isByIndex = false
  /// Whether all records are in the archive.
  package private(set) var isComplete = true

  /// Counts a snapshot.
  ///
  /// - Throws: as `SnapshotBlocks.contents` does.
  package init(
    of archived: ArchivedSnapshot, observer: @escaping Progress.Observer = { _ in }
  ) throws {
    var (collection, amount) = ([UInt8](), Amount())
    func close() {
      guard amount.count > 0 else { return }
      collections[String(decoding: collection, as: UTF8.self), default: Amount()].add(amount)
      amount = Amount()
    }
    let times = RecordTimes(of: archived.snapshot)
    let blocks = SnapshotBlocks(archived, keepsRecords: true, observer: observer)
    let contents = try blocks.contents { record, body in
      let slash = record.key.firstIndex(of: UInt8(ascii: "/")) ?? record.key.endIndex
      // Records come in the order of their paths, so those of a collection come together.
      if !collection.elementsEqual(record.key[..<slash]) {
        close()
        collection = Array(record.key[..<slash])
      }
      let length = record.length ?? 0
      records.add(length)
      amount.add(length)
      if let time = times.time(of: record.key, in: body) {
        years[time.year, default: Amount()].add(length)
      } else {
        undated.add(length)
      }
    }
    close()
    let entries = contents.blobs.entries
    let states: [BlobState]
    (states, isByIndex) = try archived.states(of: entries)
    for (entry, state) in zip(entries, states) {
      var size = UInt64(max(0, entry.size ?? 0))
      if case .held(let length) = state { size = length } else { missing.add(size) }
      blobs.add(size)
      types[entry.mimeType ?? "unknown", default: Amount()].add(size)
    }
    (flaw, isComplete) = (contents.flaw, contents.tree.isComplete)
  }
}
