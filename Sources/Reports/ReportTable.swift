package import ATProtocol

/// The fields of an object, without the object: schemas and `Docs/JSON.md` are generated from
/// them.
package struct ReportTable: Sendable {
  package struct Row: Sendable {
    package let name: String
    package let kind: JSONKind
    package let meaning: String
    package let isOptional: Bool

    package init(_ name: String, _ kind: JSONKind, _ meaning: String, isOptional: Bool = false) {
      (self.name, self.kind, self.meaning, self.isOptional) = (name, kind, meaning, isOptional)
    }

    /// The same, where it may be left out.
    package var optional: Row { Row(name, kind, meaning, isOptional: true) }
  }

  package let title: String?
  package let rows: [Row]

  package init(title: String? = nil, rows: [Row]) { (self.title, self.rows) = (title, rows) }

  /// Writes the schema of the object (JSON Schema, 2020-12), without the braces around it.
  package func writeSchema(to json: inout JSONWriter) {
    json.field("type", "object")
    json.beginObject("properties")
    for row in rows {
      json.beginObject(row.name)
      json.field("description", row.meaning)
      row.kind.writeSchema(to: &json)
      json.endObject()
    }
    json.endObject()
    json.field("required", rows.filter { !$0.isOptional }.map(\.name))
  }

  /// The rows of a table of Markdown, those of objects within included.
  package func markdown(behind path: String = "") -> [String] {
    rows.flatMap { row in
      let name = path + row.name
      let kind = row.kind.words + (row.isOptional ? ", optional" : "")
      let line = "| `\(name)` | \(kind) | \(row.meaning) |"
      guard let (inner, place) = row.kind.object else { return [line] }
      guard let title = inner.title else {
        return [line] + inner.markdown(behind: "\(name)\(place).")
      }
      let anchor = title.lowercased().replacing(" ", with: "-")
      return [line, "| `\(name)\(place).…` | | see [\(title)](#\(anchor)) |"]
    }
  }

  /// The objects within that have a description of their own.
  package var titled: [ReportTable] {
    rows.compactMap { $0.kind.object?.table }.flatMap {
      ($0.title == nil ? [] : [$0]) + $0.titled
    }
  }
}

extension JSONKind {
  fileprivate func writeSchema(to json: inout JSONWriter) {
    switch self {
    case .text(let form): form.writeSchema(type: ["string"], to: &json)
    case .integer: json.field("type", "integer")
    case .boolean: json.field("type", "boolean")
    case .any: break
    case .orNull(.integer): json.field("type", ["integer", "null"])
    case .orNull(.boolean): json.field("type", ["boolean", "null"])
    case .orNull(.text(let form)) where !form.isOneOf:
      form.writeSchema(type: ["string", "null"], to: &json)
    case .orNull(let kind):
      json.beginArray("anyOf")
      json.beginObject()
      kind.writeSchema(to: &json)
      json.endObject()
      json.beginObject()
      json.field("type", "null")
      json.endObject()
      json.endArray()
    case .list(let kind):
      json.field("type", "array")
      json.beginObject("items")
      kind.writeSchema(to: &json)
      json.endObject()
    case .map(let kind):
      json.field("type", "object")
      json.beginObject("additionalProperties")
      kind.writeSchema(to: &json)
      json.endObject()
    case .object(let table): table.writeSchema(to: &json)
    }
  }

  /// What the table of Markdown calls it.
  fileprivate var words: String {
    switch self {
    case .text(.any): "string"
    case .text(.time): "RFC 3339"
    case .text(.cid): "CID"
    case .text(.did): "DID"
    case .text(.oneOf(let words)): words.map { "`\($0)`" }.joined(separator: " \\| ")
    case .integer: "integer"
    case .boolean: "boolean"
    case .any: "any"
    case .orNull(let kind): "\(kind.words) or null"
    case .list(let kind): "array of \(kind.words)"
    case .map(let kind): "object: \(kind.words) by name"
    case .object: "object"
    }
  }

  /// The object that it is or holds, and how its place is written after the name of the field.
  fileprivate var object: (table: ReportTable, place: String)? {
    switch self {
    case .object(let table): (table, "")
    case .orNull(let kind): kind.object
    case .list(let kind): kind.object.map { ($0, "[]\($1)") }
    case .map(let kind): kind.object.map { ($0, ".*\($1)") }
    case .text, .integer, .boolean, .any: nil
    }
  }
}

extension TextForm {
  fileprivate var isOneOf: Bool { if case .oneOf = self { true } else { false } }

  fileprivate func writeSchema(type: [String], to json: inout JSONWriter) {
    if type.count == 1 { json.field("type", type[0]) } else { json.field("type", type) }
    switch self {
    case .any: break
    case .cid: json.field("pattern", "^[bz][1-9A-Za-z]+$")
    case .did: json.field("pattern", "^did:")
    case .time: json.field("format", "date-time")
    case .oneOf(let words): json.field("enum", words)
    }
  }
}
