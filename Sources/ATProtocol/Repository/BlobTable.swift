public import IPLD

/// The blobs that a repository refers to, each once.
public struct BlobTable: Sendable {
  /// One blob.
  public struct Entry: Sendable {
    /// Its CID.
    public let cid: CID
    /// The media type in the first reference to it that names one.
    public fileprivate(set) var mimeType: String?
    /// The length in the first reference to it that names one, in bytes.
    public fileprivate(set) var size: Int?
    /// Whether some reference is in today's form.
    public fileprivate(set) var isTyped: Bool
    /// Whether some reference is in the form of 2022.
    public fileprivate(set) var isLegacy: Bool
    /// The record that refers to it first, `collection/rkey`.
    public let firstRecord: String
  }

  /// The blobs, in the order of their first references.
  public private(set) var entries: [Entry] = []
  /// How many references in today's form there are, repeated ones counted each time.
  public private(set) var typedReferenceCount = 0
  /// How many references in the form of 2022 there are, repeated ones counted each time.
  public private(set) var legacyReferenceCount = 0
  /// How often each media type occurs among the blobs referred to in today's form.
  public var mimeTypeCounts: [String: Int] {
    entries.reduce(into: [:]) { counts, entry in
      if entry.isTyped { counts[entry.mimeType ?? "", default: 0] += 1 }
    }
  }

  private var positions: [CID: Int32] = [:]
  /// The name of the record that came last: many blobs of one record share it.
  private var lastRecord: (key: [UInt8], name: String) = ([], "")

  /// A table without blobs.
  public init() {}

  /// Whether the repository refers to this blob.
  public func contains(_ cid: CID) -> Bool { positions[cid] != nil }

  /// The blob's entry.
  public subscript(cid: CID) -> Entry? { positions[cid].map { entries[Int($0)] } }

  /// Takes in a reference from a record.
  package mutating func insert(_ ref: BlobRef, from record: [UInt8]) {
    if ref.isLegacy { legacyReferenceCount += 1 } else { typedReferenceCount += 1 }
    guard let position = positions[ref.cid] else {
      if lastRecord.key != record { lastRecord = (record, String(decoding: record, as: UTF8.self)) }
      positions[ref.cid] = Int32(entries.count)
      entries.append(
        Entry(
          cid: ref.cid, mimeType: ref.mimeType, size: ref.size, isTyped: !ref.isLegacy,
          isLegacy: ref.isLegacy, firstRecord: lastRecord.name))
      return
    }
    let index = Int(position)
    if entries[index].mimeType == nil { entries[index].mimeType = ref.mimeType }
    if entries[index].size == nil { entries[index].size = ref.size }
    if ref.isLegacy { entries[index].isLegacy = true } else { entries[index].isTyped = true }
  }
}
