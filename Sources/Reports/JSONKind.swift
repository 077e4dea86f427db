package import ATProtocol
internal import IPLD

/// What a value of JSON may be, as its schema and `Docs/JSON.md` say it.
package indirect enum JSONKind: Sendable {
  case text(TextForm)
  case integer, boolean
  /// Any value, as a record has it.
  case any
  case orNull(JSONKind)
  case list(of: JSONKind)
  /// Values of one kind by names that are not known beforehand.
  case map(of: JSONKind)
  case object(ReportTable)

  /// This kind, with every text in it in the given form.
  package func with(_ form: TextForm) -> JSONKind {
    switch self {
    case .text: .text(form)
    case .orNull(let kind): .orNull(kind.with(form))
    case .list(let kind): .list(of: kind.with(form))
    case .map(let kind): .map(of: kind.with(form))
    case .integer, .boolean, .any, .object: self
    }
  }
}

/// The form of a JSON string.
package enum TextForm: Sendable {
  case any, cid, did
  /// RFC 3339.
  case time
  case oneOf([String])

  package static func one<Word: CaseIterable & RawRepresentable<String>>(of words: Word.Type)
    -> TextForm
  {
    .oneOf(words.allCases.map(\.rawValue))
  }

  package static func one(of words: String...) -> TextForm { .oneOf(words) }
}

/// A value that a field of a report may have.
package protocol JSONValue: SendableMetatype {
  static var kind: JSONKind { get }
  func write(to json: inout JSONWriter)
}

extension String: JSONValue {
  package static var kind: JSONKind { .text(.any) }
  package func write(to json: inout JSONWriter) { json.string(self) }
}

extension Bool: JSONValue {
  package static var kind: JSONKind { .boolean }
  package func write(to json: inout JSONWriter) { json.boolean(self) }
}

extension BinaryInteger where Self: JSONValue {
  package static var kind: JSONKind { .integer }
  package func write(to json: inout JSONWriter) { json.integer(self) }
}

extension Int: JSONValue {}
extension Int64: JSONValue {}
extension UInt64: JSONValue {}
extension CInt: JSONValue {}

extension CID: JSONValue {
  package static var kind: JSONKind { .text(.cid) }
  package func write(to json: inout JSONWriter) { json.string(self) }
}

extension DID: JSONValue {
  package static var kind: JSONKind { .text(.did) }
  package func write(to json: inout JSONWriter) { json.string(text) }
}

extension IPLDValue: JSONValue {
  package static var kind: JSONKind { .any }
  package func write(to json: inout JSONWriter) { writeJSON(to: &json) }
}

extension Optional: JSONValue where Wrapped: JSONValue {
  package static var kind: JSONKind { .orNull(Wrapped.kind) }
  package func write(to json: inout JSONWriter) {
    if let self { self.write(to: &json) } else { json.null() }
  }
}

extension Array: JSONValue where Element: JSONValue {
  package static var kind: JSONKind { .list(of: Element.kind) }
  package func write(to json: inout JSONWriter) {
    json.beginArray()
    for element in self { element.write(to: &json) }
    json.endArray()
  }
}

extension Dictionary: JSONValue where Key == String, Value: JSONValue {
  package static var kind: JSONKind { .map(of: Value.kind) }
  package func write(to json: inout JSONWriter) {
    json.beginObject()
    for (key, value) in sorted(by: { $0.key < $1.key }) {
      json.key(key)
      value.write(to: &json)
    }
    json.endObject()
  }
}

/// A text given as bytes; invalid UTF-8 in it becomes U+FFFD.
package struct UTF8Text: JSONValue {
  let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  package static var kind: JSONKind { .text(.any) }
  package func write(to json: inout JSONWriter) { json.string(utf8: bytes.span) }
}
