import ATProtocol
import Extraction
import IPLD

/// The parts of a record that have columns of their own.
struct RecordContent {
  /// The record as JSON; nil if it cannot be read.
  var json: String?
  /// When it says that it was made.
  var createdAt: String?
  /// What people read of it.
  var text: String?
  /// What it says of its media.
  var altTexts: String?
  /// The blobs that it refers to.
  var blobs: [BlobRef] = []

  /// The fields that people read, of posts, profiles, lists, feeds and their like.
  private static let textFields = ["text", "displayName", "name", "title", "description"]

  /// Reads a record; nil for one that is missing.
  init(_ bytes: [UInt8]?) {
    guard let bytes, let value = try? DAGCBORDecoder.decode(bytes.span) else { return }
    json = value.json()
    createdAt = value["createdAt"]?.string
    let texts = Self.textFields.compactMap { value[$0]?.string }.filter { !$0.isEmpty }
    text = texts.isEmpty ? nil : texts.joined(separator: "\n")
    let alts = value.descendants.compactMap { $0["alt"]?.string }.filter { !$0.isEmpty }
    var scanner = BlobRefScanner()
    do throws(DAGCBORError) {
      var found: [BlobRef] = []
      _ = try scanner.scan(bytes.span) { found.append($0) }
      blobs = found
    } catch {
      // A record that breaks the rules of records may be read anyway; it refers to nothing.
    }
    altTexts = alts.isEmpty ? nil : alts.joined(separator: "\n")
  }
}
