internal import ATProtocol
internal import IPLD

/// A record as it is given to people: JSON if possible, otherwise its own bytes.
package struct RecordRendering: Sendable {
  /// What is written.
  package let bytes: [UInt8]
  /// Whether that is JSON.
  package let isJSON: Bool
  /// When the record says that it was made.
  let createdAt: String?

  /// Renders a record's block.
  ///
  /// Indented, its keys in the order of their bytes, so that it is the same each time and can be
  /// compared line by line.
  package init(_ block: Span<UInt8>) {
    do {
      let value = try DAGCBORDecoder.decode(block)
      var json = JSONWriter(pretty: true)
      value.writeJSON(to: &json)
      json.newline()
      (bytes, isJSON, createdAt) = (json.takeBytes(), true, value["createdAt"]?.string)
    } catch {
      (bytes, isJSON, createdAt) = (block.array, false, nil)
    }
  }
}
