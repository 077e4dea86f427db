internal import ATProtocol
package import Files
package import IPLD
internal import Repository
package import Snapshots

/// What the records that refer to blobs first say about them: the time, and words for the file's
/// name.
///
/// An account may refer to a million blobs, so only the CIDs of these records are kept.
package struct BlobNotes {
  /// When records were made.
  package let times: RecordTimes
  private let blocks: SnapshotBlocks
  private var scanner = BlobRefScanner()
  /// The records that refer to blobs, by hashes of their keys.
  private var records: [Int: CID] = [:]

  /// No notes yet.
  ///
  /// - Parameter blocks: where the records are.
  package init(in blocks: SnapshotBlocks) {
    (self.blocks, times) = (blocks, RecordTimes(of: blocks.archived.snapshot))
  }

  /// Records what a record of ``SnapshotBlocks/contents(_:)`` says.
  package mutating func add(_ record: SnapshotBlocks.Record) {
    if !blocks.isPlainRecord(record.cid) { records[record.key.hashValue] = record.cid }
  }

  /// Records what a record says, and returns when it was made.
  package mutating func time(of record: SnapshotBlocks.Record, _ body: Span<UInt8>) -> Moment? {
    add(record)
    return times.time(of: record.key, in: body)
  }

  /// The time of the record that refers to a blob first; nil if it has none, or there is no such
  /// record.
  package mutating func time(of blob: CID, record key: [UInt8]?) throws -> Moment? {
    guard let key else { return nil }
    return times.time(of: key, createdAt: try note(of: blob, key)?.record["createdAt"]?.string)
  }

  /// The record that refers to a blob first, and which of its blobs that is; nil for a record that
  /// breaks the rules.
  private mutating func note(
    of blob: CID, _ key: [UInt8]
  ) throws -> (record: IPLDValue, number: Int)? {
    guard let cid = records[key.hashValue], let body = try blocks.allLaidOut().body(of: cid) else {
      return nil
    }
    var (count, number): (Int, Int?) = (0, nil)
    do throws(DAGCBORError) {
      _ = try scanner.scan(body.span) { ref in
        count += 1
        if ref.cid == blob, number == nil { number = count }
      }
      guard let number else { return nil }
      return (try DAGCBORDecoder.decode(body.span), number)
    } catch {
      return nil
    }
  }

  // MARK: Names

  /// How many characters of a key that tells a time are enough: within half a minute.
  private static let shortKey = 8
  /// How many characters are used of any other key.
  private static let longestKey = 40

  /// The name for a blob, without an ending: `2025-03-22_3lkxag2q_1_plan-of-forty-beds`.
  ///
  /// The day of the record that refers to the blob first, the beginning of its key, which of the
  /// record's blobs it is, and the words that belong to it.
  ///
  /// - Parameters:
  ///   - key: the key of that record.
  ///   - isWhole: whether all of the key is in it.
  mutating func name(of blob: CID, record key: [UInt8], isWhole: Bool) throws -> String {
    let note = try note(of: blob, key)
    let time = times.time(of: key, createdAt: note?.record["createdAt"]?.string)
    let rest = FileNaming.parts(of: key).rest.prefix(Self.longestKey)
    let isShort = !isWhole && rest.count == TID.maximumLength
    let shown = String(
      decoding: rest.prefix(isShort ? Self.shortKey : Self.longestKey).map { byte in
        let lower = byte | 0x20
        if UInt8(ascii: "a")...UInt8(ascii: "z") ~= lower { return lower }
        return UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte ? byte : UInt8(ascii: "-")
      }, as: UTF8.self)
    let words = FileNaming.slug(note.map { Self.text(of: blob, in: $0.record) } ?? "")
    let name = "\(time?.day ?? "undated")_\(shown)_\(note?.number ?? 1)"
    return words.isEmpty ? name : "\(name)_\(words)"
  }

  /// A value to be visited: its key, and what the maps around it say about it.
  private typealias Place = (value: IPLDValue, key: String, alt: String?, title: String?)

  /// Keys of pictures that have no better name.
  private static let telling: Set<String> = ["avatar", "banner", "icon", "logo", "cover"]

  /// The words that belong to a blob of a record.
  private static func text(of blob: CID, in record: IPLDValue) -> String {
    let recordText = record.text("text", "title", "name", "displayName", "description") ?? ""
    var waiting: [Place] = [(record, "", nil, nil)]
    var isOutermost = true
    while let place = waiting.popLast() {
      if let items = place.value.array {
        waiting += items.reversed().map { ($0, place.key, place.alt, place.title) }
      } else if let map = place.value.map {
        let found = place.value.blobCID
        if found == blob {
          let key = telling.contains(place.key) || recordText.isEmpty ? place.key : recordText
          return place.alt ?? place.title ?? key
        }
        let alt = place.value.text("alt") ?? place.alt
        let title = isOutermost ? nil : place.value.text("title", "name") ?? place.title
        if found == nil {
          waiting += map.entries.reversed().map { ($0.value, $0.key, alt, title) }
        }
      }
      isOutermost = false
    }
    return recordText
  }
}
