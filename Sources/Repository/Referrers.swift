internal import ATProtocol
internal import IPLD

/// The records that refer to blobs, or cannot be read, by the numbers of their blocks.
///
/// An account may have a million with a picture each, so it takes some twenty bytes of each.
struct Referrers {
  /// The records that are in ``lists``, for a look at each that is short.
  private var records: BlockSet
  /// Where in ``numbers`` the list of each begins.
  private var lists: [Int: Int] = [:]
  /// Of each how many blobs it refers to, and then the numbers of these.
  private var numbers: [UInt32] = []
  /// Those that cannot be read.
  private var unreadable: [Int: UnreadableRecords] = [:]

  /// No records, of so many blocks.
  package init(blockCount: Int) { records = BlockSet(count: blockCount) }

  /// Adds a record that is none of them yet.
  ///
  /// - Parameters:
  ///   - record: the number of its block.
  ///   - blobs: the numbers of the blobs that it refers to, each once.
  ///   - unreadable: the record itself, if it cannot be read.
  mutating func insert(_ record: Int, blobs: [Int], _ unreadable: UnreadableRecords) {
    guard !blobs.isEmpty || unreadable.count > 0 else { return }
    records.insert(record)
    lists[record] = numbers.count
    numbers.append(UInt32(blobs.count))
    for blob in blobs { numbers.append(UInt32(blob)) }
    if unreadable.count > 0 { self.unreadable[record] = unreadable }
  }

  /// The blobs that a record refers to; nil if it is none of these.
  @inline(__always)
  func blobs(of record: Int) -> ArraySlice<UInt32>? {
    guard records.contains(record), let list = lists[record] else { return nil }
    let first = list + 1
    return numbers[first..<first + Int(numbers[first - 1])]
  }

  /// The record itself, if it is one of these and cannot be read.
  func unreadable(_ record: Int) -> UnreadableRecords {
    unreadable.isEmpty ? UnreadableRecords() : unreadable[record] ?? UnreadableRecords()
  }
}
