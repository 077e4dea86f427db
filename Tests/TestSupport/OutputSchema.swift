import Foundation

/// The JSON Schemas of `Docs/schemas`, as far as they use the words of JSON Schema (draft 2020-12):
/// `type`, `enum`, `pattern`, `properties`, `required`, `additionalProperties`, `items`, `anyOf`
/// and `oneOf`.
///
/// A field that a schema does not know is a mistake here, though readers are to pass over it: it
/// would not be documented.
package struct OutputSchema {
  private let root: [String: Any]

  /// The schema with this name, such as `verify`.
  package init(_ name: String) throws {
    let url = URL(filePath: "\(Command.packageRoot)/Docs/schemas/\(name).schema.json")
    let object = try JSONSerialization.jsonObject(with: try Data(contentsOf: url))
    guard let root = object as? [String: Any] else { throw CocoaError(.fileReadCorruptFile) }
    self.root = root
  }

  /// What is wrong with lines of output, each an object that names its schema.
  package static func faults(in text: String) -> [String] {
    text.split(separator: "\n").flatMap { line -> [String] in
      do {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
        guard let name = (object as? [String: Any])?["schema"] as? String,
          name.hasPrefix("carpack.")
        else { return ["no schema is named: \(line.prefix(200))"] }
        let schema = try OutputSchema(String(name.dropFirst("carpack.".count)))
        return schema.faults(in: object).map { "\($0) in \(line.prefix(300))" }
      } catch {
        return ["\(error): \(line.prefix(200))"]
      }
    }
  }

  /// What is wrong with a value.
  package func faults(in value: Any) -> [String] { Self.faults(value, root, "") }

  private static func faults(_ value: Any, _ schema: [String: Any], _ place: String) -> [String] {
    if let choices = (schema["oneOf"] ?? schema["anyOf"]) as? [[String: Any]] {
      let all = choices.map { faults(value, $0, place) }
      // The nearest one says most of what is wrong.
      return all.contains(where: \.isEmpty) ? [] : all.min { $0.count < $1.count } ?? []
    }
    var found: [String] = []
    let types = (schema["type"] as? [String]) ?? [schema["type"] as? String].compactMap(\.self)
    let type = name(ofTypeOf: value)
    // Without a type, a schema is of any value.
    guard !types.isEmpty else { return [] }
    if !types.contains(type) {
      return ["\(place): \(type), not \(types.joined(separator: " or "))"]
    }
    if let values = schema["enum"] as? [String], !values.contains(value as? String ?? "") {
      found.append("\(place): \(value) is none of \(values)")
    }
    if let pattern = schema["pattern"] as? String, let text = value as? String,
      text.range(of: pattern, options: .regularExpression) == nil
    {
      found.append("\(place): \(text) does not fit \(pattern)")
    }
    if let items = value as? [Any], let schema = schema["items"] as? [String: Any] {
      found += items.flatMap { faults($0, schema, place + "[]") }
    }
    if let fields = value as? [String: Any] {
      let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
      let others = schema["additionalProperties"] as? [String: Any]
      for (key, value) in fields {
        if let schema = properties[key] ?? others {
          found += faults(value, schema, "\(place).\(key)")
        } else {
          found.append("\(place).\(key) is not documented")
        }
      }
      for key in schema["required"] as? [String] ?? [] where fields[key] == nil {
        found.append("\(place).\(key) is not there")
      }
    }
    return found
  }

  private static func name(ofTypeOf value: Any) -> String {
    switch value {
    case is NSNull: "null"
    case is String: "string"
    case is [Any]: "array"
    case is [String: Any]: "object"
    case let number as NSNumber:
      switch unsafe String(cString: number.objCType) {
      case "c", "B": "boolean"
      case "d", "f": "number"
      default: "integer"
      }
    default: "?"
    }
  }
}
