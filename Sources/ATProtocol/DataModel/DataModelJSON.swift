package import IPLD

/// AT Protocol's JSON: links are `{"$link": "b…"}`, bytes are `{"$bytes": "…"}` in base 64.
///
/// Source: [data model](https://atproto.com/specs/data-model), "JSON".
package enum DataModelJSON {
  /// The key of an object that stands for a link.
  static let linkKey = "$link"
  /// The key of an object that stands for bytes.
  static let bytesKey = "$bytes"

  /// The value that takes up all of a JSON text.
  ///
  /// A number with a fraction or an exponent becomes an integer where it is one, as `123.0` is, and
  /// a float otherwise, which AT Protocol does not allow.
  ///
  /// - Throws: ``JSONError``: the text is not JSON by the letter of RFC 8259, has a key twice in
  ///   one object, an integer that does not fit in 64 bits, or an object with `$link` or `$bytes`
  ///   that stands for neither a link nor bytes.
  package static func decode(_ json: [UInt8]) throws(JSONError) -> IPLDValue {
    var parser = JSONParser(json)
    return try parser.parse()
  }

  /// The values of a text that has one after the other, as JSON lines are; one at least.
  ///
  /// - Throws: ``JSONError``, as ``decode(_:)`` does.
  package static func decodeAll(_ json: [UInt8]) throws(JSONError) -> [IPLDValue] {
    var parser = JSONParser(json)
    return try parser.parseAll()
  }

  /// A value as JSON in one line, keys in the order of their bytes.
  package static func encode(_ value: IPLDValue) -> [UInt8] {
    var json = JSONWriter()
    value.writeJSON(to: &json)
    return json.takeBytes()
  }
}

extension IPLDValue {
  /// An array or a map whose items are being written.
  private enum Unfinished {
    case array([IPLDValue], next: Int)
    case map([IPLDMap.Entry], next: Int)
  }

  /// Writes the value as AT Protocol's JSON, keys in the order of their bytes.
  ///
  /// Values outside of AT Protocol's data model are written too, though not all of them can be read
  /// back: floats, integers beyond 64 bits, links of other kinds, maps that happen to have a key
  /// `$link` or `$bytes`.
  package func writeJSON(to json: inout JSONWriter) {
    var open: [Unfinished] = []
    Self.begin(self, &open, &json)
    while let innermost = open.popLast() {
      switch innermost {
      case .array(let items, let next):
        guard next < items.count else {
          json.endArray()
          continue
        }
        open.append(.array(items, next: next + 1))
        Self.begin(items[next], &open, &json)
      case .map(let entries, let next):
        guard next < entries.count else {
          json.endObject()
          continue
        }
        open.append(.map(entries, next: next + 1))
        json.key(entries[next].key)
        Self.begin(entries[next].value, &open, &json)
      }
    }
  }

  /// The value as AT Protocol's JSON, keys in the order of their bytes.
  ///
  /// - Parameter pretty: one line per item, instead of no white space at all.
  package func json(pretty: Bool = false) -> String {
    var writer = JSONWriter(pretty: pretty)
    writeJSON(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Writes a scalar, or the start of an array or a map.
  private static func begin(
    _ value: IPLDValue, _ open: inout [Unfinished], _ json: inout JSONWriter
  ) {
    switch value {
    case .null: json.null()
    case .boolean(let flag): json.boolean(flag)
    case .integer(let number): json.integer(number)
    case .float(let number): json.double(number)
    case .string(let text): json.string(text)
    case .bytes(let bytes): write(DataModelJSON.bytesKey, Base64.encode(bytes), &json)
    case .link(let cid): write(DataModelJSON.linkKey, cid.description, &json)
    case .array(let items):
      json.beginArray()
      open.append(.array(items, next: 0))
    case .map(let map):
      json.beginObject()
      open.append(.map(map.entries.sorted { Self.precedes($0.key, $1.key) }, next: 0))
    }
  }

  private static func write(_ key: String, _ text: String, _ json: inout JSONWriter) {
    json.beginObject()
    json.key(key)
    json.string(text)
    json.endObject()
  }

  private static func precedes(_ left: String, _ right: String) -> Bool {
    left.utf8.lexicographicallyPrecedes(right.utf8)
  }
}
