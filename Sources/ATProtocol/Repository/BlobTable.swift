public import IPLD

/// The blobs that a repository refers to, each once.
///
/// An account may refer to a million blobs, so what is kept of each are some hundred bytes: 24 of
/// facts, its CID, twelve to look it up, and the key of the record that refers to it first, which
/// blobs of one record share.
///
/// Invariant: the CIDs, keys and collections lie one after the other in a buffer each, in the order
/// in which they came.
public struct BlobTable: Sendable {
  /// One blob.
  public struct Entry: Sendable {
    /// Its CID.
    public let cid: CID
    /// The media type in the first reference to it that names one.
    public let mimeType: String?
    /// The length in the first reference to it that names one, in bytes.
    public let size: Int?
    /// Whether some reference is in today's form.
    package let isTyped: Bool
    /// Whether some reference is in the form of 2022.
    package let isLegacy: Bool
    /// The record that refers to it first, `collection/rkey`.
    public let firstRecord: String
  }

  /// The blobs, in the order of their first references, each made when it is asked for.
  public struct Entries: RandomAccessCollection, Sendable {
    fileprivate let table: BlobTable

    /// The first index: 0.
    public var startIndex: Int { 0 }
    /// How many there are.
    public var endIndex: Int { table.rows.count }

    /// One of them.
    public subscript(position: Int) -> Entry { table.entry(position) }
  }

  /// What is kept of a blob.
  private struct Row {
    /// Where its CID begins in ``cids``.
    let cid: UInt64
    /// The length that a reference names; negative if none does.
    var size: Int64
    /// The number of the record's key.
    let key: UInt32
    /// Twice as many bits for forms, above those one more than the number of the media type; 0 for
    /// none.
    var typeAndForms: UInt32

    static let typed: UInt32 = 1
    static let legacy: UInt32 = 2
    static let formBits: UInt32 = 2

    var type: Int? {
      get {
        let number = typeAndForms >> Self.formBits
        return number > 0 ? Int(number - 1) : nil
      }
      set {
        let number = newValue.map { UInt32($0 + 1) } ?? 0
        typeAndForms = number << Self.formBits | typeAndForms & 3
      }
    }
  }

  /// How many different media types are kept apart so that each is kept once; strangers may make up
  /// any number.
  private static let maximumSharedTypes = 1024
  /// How many media types are kept.
  private static let maximumTypes = 1 << 29

  /// How many references in today's form there are, repeated ones counted each time.
  package private(set) var typedReferenceCount = 0
  /// How many references in the form of 2022 there are, repeated ones counted each time.
  package private(set) var legacyReferenceCount = 0

  private var rows: [Row] = []
  private var cids: [UInt8] = []
  /// The number of a CID is that of its row.
  private var slots = CIDSlots()
  private var keys = RecordKeys()
  private var types: [String] = []
  private var typeNumbers: [String: Int] = [:]

  /// A table without blobs.
  package init() {}

  /// The blobs, in the order of their first references.
  public var entries: Entries { Entries(table: self) }

  /// How often each media type occurs among the blobs referred to in today's form.
  package var mimeTypeCounts: [String: Int] {
    rows.reduce(into: [:]) { counts, row in
      guard row.typeAndForms & Row.typed != 0 else { return }
      counts[row.type.map { types[$0] } ?? "", default: 0] += 1
    }
  }

  /// Whether the repository refers to this blob.
  package func contains(_ cid: CID) -> Bool { number(of: cid) != nil }

  /// The blob's place among ``entries``; nil if the repository does not refer to it.
  package func number(of cid: CID) -> Int? {
    slots.slot(slots.hash(of: cid)) { Self.cid(rows[$0], cids) == cid }.map(slots.number)
  }

  /// The blob's entry.
  package subscript(cid: CID) -> Entry? { number(of: cid).map(entry) }

  private func entry(_ number: Int) -> Entry {
    let row = rows[number]
    return Entry(
      cid: Self.cid(row, cids), mimeType: row.type.map { types[$0] },
      size: row.size < 0 ? nil : Int(row.size),
      isTyped: row.typeAndForms & Row.typed != 0, isLegacy: row.typeAndForms & Row.legacy != 0,
      firstRecord: keys[Int(row.key)])
  }

  /// The number of a blob, or the next one, which is taken.
  private static func number(
    of cid: CID, in slots: inout CIDSlots, _ rows: [Row], _ cids: [UInt8]
  ) -> Int {
    let hash = slots.hash(of: cid)
    let (slot, _) = slots.insert(hash, rows.count) {
      Self.cid(rows[$0], cids) == cid
    } cid: {
      Self.cid(rows[$0], cids)
    }
    return slots.number(slot)
  }

  private static func cid(_ row: Row, _ cids: [UInt8]) -> CID {
    var offset = Int(row.cid)
    do throws(CIDError) {
      return try CID(cids.span, at: &offset)
    } catch {
      preconditionFailure("the appended bytes are not a CID")
    }
  }

  // MARK: Taking references in

  /// Takes in a reference from a record; returns the blob's place among ``entries``.
  @discardableResult
  package mutating func insert(_ ref: BlobRef, from record: [UInt8]) -> Int {
    if ref.isLegacy { legacyReferenceCount += 1 } else { typedReferenceCount += 1 }
    return insert(
      ref.cid, forms: ref.isLegacy ? Row.legacy : Row.typed, size: ref.size.map(Int64.init) ?? -1,
      type: ref.mimeType, from: record)
  }

  /// Takes in what another table knows, whose references come after those of this one.
  package mutating func add(_ other: BlobTable) {
    if rows.isEmpty {
      self = other
      return
    }
    typedReferenceCount += other.typedReferenceCount
    legacyReferenceCount += other.legacyReferenceCount
    for row in other.rows {
      _ = insert(
        Self.cid(row, other.cids), forms: row.typeAndForms & (Row.typed | Row.legacy),
        size: row.size,
        type: row.type.map { other.types[$0] }, from: other.keys.bytes(Int(row.key)))
    }
  }

  /// Takes in what is known of a blob; returns its place among ``entries``.
  private mutating func insert(
    _ cid: CID, forms: UInt32, size: Int64, type: String?, from record: [UInt8]
  ) -> Int {
    let number = Self.number(of: cid, in: &slots, rows, cids)
    if number == rows.count {
      rows.append(
        Row(
          cid: UInt64(cids.count), size: -1, key: UInt32(keys.number(of: record)), typeAndForms: 0))
      cid.append(to: &cids)
    }
    rows[number].typeAndForms |= forms
    if rows[number].size < 0 { rows[number].size = size }
    if rows[number].type == nil, let type { rows[number].type = self.number(ofType: type) }
    return number
  }

  private mutating func number(ofType type: String) -> Int? {
    if let number = typeNumbers[type] { return number }
    guard types.count < Self.maximumTypes else { return nil }
    types.append(type)
    if typeNumbers.count < Self.maximumSharedTypes { typeNumbers[type] = types.count - 1 }
    return types.count - 1
  }
}

/// The keys of records, concatenated; consecutive keys of one collection share its name.
private struct RecordKeys: Sendable {
  /// Where each key ends in ``rest``.
  private var ends: [UInt64] = []
  /// What follows the slashes.
  private var rest: [UInt8] = []
  /// What goes before, slashes included, and the number of the first key that has it.
  private var collections: [(first: Int, name: [UInt8])] = []
  private var last: [UInt8] = []

  /// The number of a key, which is the one before it if that is the same.
  mutating func number(of key: [UInt8]) -> Int {
    if !ends.isEmpty, key == last { return ends.count - 1 }
    last = key
    let slash = key.firstIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    if collections.last.map({ !$0.name.elementsEqual(key[..<slash]) }) ?? true {
      collections.append((ends.count, Array(key[..<slash])))
    }
    rest.append(contentsOf: key[slash...])
    ends.append(UInt64(rest.count))
    return ends.count - 1
  }

  /// A key as text.
  subscript(number: Int) -> String { String(decoding: bytes(number), as: UTF8.self) }

  /// A key.
  func bytes(_ number: Int) -> [UInt8] {
    // The last collection that begins there or before.
    var (low, high) = (0, collections.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if collections[middle].first <= number { low = middle } else { high = middle }
    }
    let start = number > 0 ? Int(ends[number - 1]) : 0
    return collections[low].name + rest[start..<Int(ends[number])]
  }
}
