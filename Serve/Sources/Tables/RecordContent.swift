import ATProtocol
import IPLD

/// What of a record has columns of its own.
struct RecordContent {
  /// A blob that it refers to.
  struct Blob {
    let cid: String
    let mimeType: String?
    let size: Int?
  }

  /// The record as JSON; nil if it cannot be read.
  var json: String?
  /// When it says that it was made.
  var createdAt: String?
  /// What people read of it.
  var text: String?
  /// What it says of its media.
  var altTexts: String?
  var blobs: [Blob] = []

  /// The fields that people read, of posts, profiles, lists, feeds and their like.
  private static let textFields = ["text", "displayName", "name", "title", "description"]

  /// Reads a record; nil for one that is not there.
  init(_ bytes: [UInt8]?) {
    guard let bytes, let value = try? DAGCBORDecoder.decode(bytes.span) else { return }
    json = value.json()
    createdAt = value["createdAt"]?.string
    let texts = Self.textFields.compactMap { value[$0]?.string }.filter { !$0.isEmpty }
    text = texts.isEmpty ? nil : texts.joined(separator: "\n")
    var alts: [String] = []
    // A stack, for records nest as deep as they like.
    var open = [value]
    while let next = open.popLast() {
      if let map = next.map {
        if let alt = next["alt"]?.string, !alt.isEmpty { alts.append(alt) }
        if let blob = Self.blob(next, map) {
          blobs.append(blob)
        } else {
          open += map.entries.map(\.value).reversed()
        }
      } else if let items = next.array {
        open += items.reversed()
      }
    }
    altTexts = alts.isEmpty ? nil : alts.joined(separator: "\n")
  }

  /// A reference to a blob, in the form of today or the legacy one.
  private static func blob(_ value: IPLDValue, _ map: IPLDMap) -> Blob? {
    if value["$type"]?.string == "blob", let cid = value["ref"]?.link {
      return Blob(cid: "\(cid)", mimeType: value["mimeType"]?.string, size: value["size"]?.integer)
    }
    guard map.entries.count == 2, let cid = value["cid"]?.string, (try? CID(cid)) != nil,
      let type = value["mimeType"]?.string
    else { return nil }
    return Blob(cid: cid, mimeType: type, size: nil)
  }
}
