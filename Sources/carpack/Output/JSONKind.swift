internal import ATProtocol
internal import IPLD

/// What a value of JSON may be, as its schema and `Docs/JSON.md` say it.
indirect enum JSONKind: Sendable {
  case text(TextForm)
  case integer, boolean
  case orNull(JSONKind)
  case list(of: JSONKind)
  /// Values of one kind by names that are not known beforehand.
  case map(of: JSONKind)
  case object(ReportTable)

  /// The same, where each text in it has a form.
  func with(_ form: TextForm) -> JSONKind {
    switch self {
    case .text: .text(form)
    case .orNull(let kind): .orNull(kind.with(form))
    case .list(let kind): .list(of: kind.with(form))
    case .map(let kind): .map(of: kind.with(form))
    case .integer, .boolean, .object: self
    }
  }
}

/// What a text of JSON looks like.
enum TextForm: Sendable {
  case any, cid, did
  /// RFC 3339.
  case time
  case oneOf([String])

  static func one<Word: CaseIterable & RawRepresentable<String>>(of words: Word.Type) -> TextForm {
    .oneOf(words.allCases.map(\.rawValue))
  }

  static func one(of words: String...) -> TextForm { .oneOf(words) }
}

/// A value that a field of a report may have.
protocol JSONValue: SendableMetatype {
  static var kind: JSONKind { get }
  func write(to json: inout JSONWriter)
}

extension String: JSONValue {
  static var kind: JSONKind { .text(.any) }
  func write(to json: inout JSONWriter) { json.string(self) }
}

extension Bool: JSONValue {
  static var kind: JSONKind { .boolean }
  func write(to json: inout JSONWriter) { json.boolean(self) }
}

extension BinaryInteger where Self: JSONValue {
  static var kind: JSONKind { .integer }
  func write(to json: inout JSONWriter) { json.integer(self) }
}

extension Int: JSONValue {}
extension Int64: JSONValue {}
extension UInt64: JSONValue {}
extension CInt: JSONValue {}

extension CID: JSONValue {
  static var kind: JSONKind { .text(.cid) }
  func write(to json: inout JSONWriter) { json.string(self) }
}

extension DID: JSONValue {
  static var kind: JSONKind { .text(.did) }
  func write(to json: inout JSONWriter) { json.string(text) }
}

extension Optional: JSONValue where Wrapped: JSONValue {
  static var kind: JSONKind { .orNull(Wrapped.kind) }
  func write(to json: inout JSONWriter) {
    if let self { self.write(to: &json) } else { json.null() }
  }
}

extension Array: JSONValue where Element: JSONValue {
  static var kind: JSONKind { .list(of: Element.kind) }
  func write(to json: inout JSONWriter) {
    json.beginArray()
    for element in self { element.write(to: &json) }
    json.endArray()
  }
}

extension Dictionary: JSONValue where Key == String, Value: JSONValue {
  static var kind: JSONKind { .map(of: Value.kind) }
  func write(to json: inout JSONWriter) {
    json.beginObject()
    for (key, value) in sorted(by: { $0.key < $1.key }) {
      json.key(key)
      value.write(to: &json)
    }
    json.endObject()
  }
}

/// A text that is at hand as bytes; what is not UTF-8 in it becomes U+FFFD.
struct UTF8Text: JSONValue {
  let bytes: [UInt8]
  static var kind: JSONKind { .text(.any) }
  func write(to json: inout JSONWriter) { json.string(utf8: bytes.span) }
}
