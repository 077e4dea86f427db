internal import ATProtocol
package import Files
package import IPLD
package import Snapshots

/// What the records say that refer to blobs, each blob's first: when that was, and what its file
/// may be called.
///
/// An account may refer to a million blobs, so what is kept of each are some 40 bytes, and its
/// name, if names are wanted.
package struct BlobNotes {
  /// When records were made.
  package let times: RecordTimes
  private let hasNames: Bool
  private var scanner = BlobRefScanner()
  /// The places of blobs by the first 8 bytes of their digests; two that share these share a note,
  /// which does no harm.
  private var places: [UInt64: UInt32] = [:]
  /// Nanoseconds since 1970; the least number for no time.
  private var moments: [Int64] = []
  /// The names one after the other, and where each ends: with a short key, then with a long one.
  private var names: [UInt8] = []
  private var ends: [Int] = []

  /// No notes yet.
  ///
  /// - Parameters:
  ///   - snapshot: whose records they are.
  ///   - hasNames: whether names are made.
  package init(of snapshot: Snapshot, hasNames: Bool = false) {
    (times, self.hasNames) = (RecordTimes(of: snapshot), hasNames)
  }

  /// Takes in a record, and returns when it was made.
  package mutating func time(of key: [UInt8], _ record: Span<UInt8>) -> FileTime? {
    add(key, record)
    return times.time(of: key, createdAt: RecordTimes.createdAt(in: record))
  }

  /// Takes in what a record says.
  mutating func add(_ key: [UInt8], _ record: Span<UInt8>) {
    var found: [CID] = []
    // Blobs of a record that cannot be read are called after its key.
    guard (try? scanner.scan(record, found: { found.append($0.cid) })) != nil else { return }
    var fresh: [(cid: CID, number: Int)] = []
    for (index, cid) in found.enumerated() where places[Self.place(of: cid)] == nil {
      places[Self.place(of: cid)] = UInt32(moments.count + fresh.count)
      fresh.append((cid, index + 1))
    }
    guard !fresh.isEmpty else { return }
    let value = (try? DAGCBORDecoder.decode(record)) ?? .null
    let time = times.time(of: key, createdAt: value["createdAt"]?.string)
    let texts = hasNames ? BlobTexts(value) : nil
    for (cid, number) in fresh {
      moments.append(time.map { $0.seconds * 1_000_000_000 + $0.nanoseconds } ?? .min)
      guard let texts else { continue }
      for isWhole in [false, true] {
        let name = Self.name(number: number, of: key, time, texts[cid], isWhole: isWhole)
        names.append(contentsOf: name.utf8)
        ends.append(names.count)
      }
    }
  }

  /// The time of the record that refers to a blob first.
  ///
  /// - Parameter record: the key of that record, if it is known otherwise.
  package func time(of cid: CID, record: [UInt8]?) -> FileTime? {
    guard let place = places[Self.place(of: cid)] else {
      return record.map { times.time(of: $0, createdAt: nil) } ?? times.commit
    }
    let moment = moments[Int(place)]
    return FileTime(seconds: moment / 1_000_000_000, nanoseconds: moment % 1_000_000_000)
  }

  /// The name for a blob, without an ending; nil for one to which no record refers.
  ///
  /// - Parameters:
  ///   - record: the key of the record that refers to it first, if it is known otherwise.
  ///   - isWhole: whether all of the record's key is in it.
  func name(of cid: CID, record: [UInt8]?, isWhole: Bool) -> String? {
    guard hasNames, let place = places[Self.place(of: cid)] else {
      guard let record else { return nil }
      let time = times.time(of: record, createdAt: nil)
      return Self.name(number: 1, of: record, time, "", isWhole: isWhole)
    }
    let index = 2 * Int(place) + (isWhole ? 1 : 0)
    let start = index > 0 ? ends[index - 1] : 0
    return String(decoding: names[start..<ends[index]], as: UTF8.self)
  }

  /// How much of a key that tells a time is enough: within half a minute.
  private static let shortKey = 8
  /// How much there is of any other key.
  private static let longestKey = 40

  /// The name of a blob: `2025-03-22_3lkxag2q_1_plan-of-forty-beds`.
  ///
  /// The day of the record that refers to the blob first, the beginning of its key, which of the
  /// record's blobs it is, and the words that belong to it.
  private static func name(
    number: Int, of key: [UInt8], _ time: FileTime?, _ text: String, isWhole: Bool
  ) -> String {
    let rest = FileNaming.parts(of: key).rest.prefix(longestKey)
    let isShort = !isWhole && rest.count == TID.maximumLength
    let shown = String(
      decoding: rest.prefix(isShort ? shortKey : longestKey).map { byte in
        let lower = byte | 0x20
        if UInt8(ascii: "a")...UInt8(ascii: "z") ~= lower { return lower }
        return UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte ? byte : UInt8(ascii: "-")
      }, as: UTF8.self)
    let words = Slug.make(text)
    let name = "\(time?.day ?? "undated")_\(shown)_\(number)"
    return words.isEmpty ? name : "\(name)_\(words)"
  }

  private static func place(of cid: CID) -> UInt64 {
    cid.multihash.sha256?.words.0 ?? UInt64(bitPattern: Int64(cid.hashValue))
  }
}

/// The words that belong to each blob of a record.
struct BlobTexts {
  private var texts: [CID: String] = [:]
  private let recordText: String

  /// A value that is to be looked at: what it is called, and what is said about it by the maps
  /// around it.
  private typealias Place = (value: IPLDValue, key: String, alt: String?, title: String?)

  /// Keys under which pictures stand that are called by nothing better.
  private static let telling: Set<String> = ["avatar", "banner", "icon", "logo", "cover"]

  /// Reads a record.
  init(_ record: IPLDValue) {
    func text(_ value: IPLDValue, _ keys: [String]) -> String? {
      for key in keys {
        if let text = value[key]?.string, !text.isEmpty { return text }
      }
      return nil
    }
    recordText = text(record, ["text", "title", "name", "displayName", "description"]) ?? ""
    var waiting: [Place] = [(record, "", nil, nil)]
    var isOutermost = true
    while let place = waiting.popLast() {
      if let items = place.value.array {
        waiting += items.reversed().map { ($0, place.key, place.alt, place.title) }
      } else if let map = place.value.map {
        if let cid = Self.blob(place.value), texts[cid] == nil {
          texts[cid] =
            place.alt ?? place.title
            ?? (Self.telling.contains(place.key) || recordText.isEmpty ? place.key : recordText)
          continue
        }
        let alt = text(place.value, ["alt"]) ?? place.alt
        let title = isOutermost ? nil : text(place.value, ["title", "name"]) ?? place.title
        waiting += map.entries.reversed().map { ($0.value, $0.key, alt, title) }
      }
      isOutermost = false
    }
  }

  /// What is said about a blob.
  subscript(cid: CID) -> String { texts[cid] ?? recordText }

  /// The blob that a map refers to, in today's form or in that of 2022.
  private static func blob(_ value: IPLDValue) -> CID? {
    if let link = value["ref"]?.link { return link }
    guard value["mimeType"]?.string != nil else { return nil }
    return value["cid"]?.string.flatMap { try? CID($0) }
  }
}
