import IPLD

/// The rules of AT Protocol's data model that a value can break although DAG-CBOR and JSON can say
/// it: what the conformance vectors ask of a value that was read.
///
/// Source: [data model](https://atproto.com/specs/data-model).
enum DataModel {
  /// Checks a record, or whatever else stands for itself.
  ///
  /// - Throws: ``DataModelError``: the first thing that the data model forbids, and where in the
  ///   value it is.
  static func check(_ value: IPLDValue) throws(DataModelError) {
    guard value.map != nil else { throw DataModelError(.notAMap) }
    try check(value, depth: 0)
  }

  /// The recursion ends at the depth at which DAG-CBOR ends.
  private static func check(_ value: IPLDValue, depth: Int) throws(DataModelError) {
    switch value {
    case .null, .boolean, .string, .bytes: break
    case .float: throw DataModelError(.float)
    case .integer(let number):
      guard Int64(exactly: number) != nil else { throw DataModelError(.integerOutOfRange) }
    case .link(let cid):
      guard cid.isATProtocolLink else { throw DataModelError(.linkNotAllowed) }
    case .array(let items):
      guard depth < DAGCBORScanner.maximumDepth else { throw DataModelError(.tooDeep) }
      for (index, item) in items.enumerated() {
        try check(item, depth: depth + 1, below: "\(index)")
      }
    case .map(let map):
      guard depth < DAGCBORScanner.maximumDepth else { throw DataModelError(.tooDeep) }
      for entry in map.entries {
        if ["$link", "$bytes"].contains(entry.key) {
          throw DataModelError(.reservedKey, path: [entry.key])
        }
        try check(entry.value, depth: depth + 1, below: entry.key)
      }
      try checkType(map)
    }
  }

  private static func check(_ value: IPLDValue, depth: Int, below name: @autoclosure () -> String)
    throws(DataModelError)
  {
    do {
      try check(value, depth: depth)
    } catch {
      throw DataModelError(error.reason, path: [name()] + error.path)
    }
  }

  /// What a map's `$type` asks for.
  private static func checkType(_ map: IPLDMap) throws(DataModelError) {
    guard let type = map["$type"] else { return }
    guard let name = type.string, !name.isEmpty else {
      throw DataModelError(.malformedType, path: ["$type"])
    }
    guard name == "blob" else { return }
    guard let ref = map["ref"]?.link, ref.codec == .raw else {
      throw DataModelError(.malformedBlob, path: ["ref"])
    }
    guard let mimeType = map["mimeType"]?.string, !mimeType.isEmpty else {
      throw DataModelError(.malformedBlob, path: ["mimeType"])
    }
    guard let size = map["size"]?.integer, size > 0 else {
      throw DataModelError(.malformedBlob, path: ["size"])
    }
  }
}

/// What in a value AT Protocol's data model forbids.
struct DataModelError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rules that can be broken.
  enum Reason: String, Sendable {
    /// The outermost value is not a map.
    case notAMap = "the value is not a map"
    /// A float.
    case float = "a float, which AT Protocol does not allow"
    /// An integer that does not fit in 64 bits, signed.
    case integerOutOfRange = "an integer outside 64 bits"
    /// A link that is not a CID of version 1 with SHA-256, DAG-CBOR or raw.
    case linkNotAllowed = "a link that AT Protocol does not allow"
    /// A `$type` that is not text, or empty.
    case malformedType = "a $type that is not a name"
    /// A map with `$type` "blob" that lacks a raw link `ref`, a `mimeType` or a `size` above 0.
    case malformedBlob = "a blob reference that is missing something, or has it wrong"
    /// A key that stands for links or bytes in JSON.
    case reservedKey = "a key that is reserved for JSON"
    /// Arrays and maps nested deeper than DAG-CBOR is read.
    case tooDeep = "values nested too deeply"
  }

  /// The broken rule.
  let reason: Reason
  /// The keys and positions that lead to the place, outermost first.
  let path: [String]

  /// An error with its place.
  init(_ reason: Reason, path: [String] = []) {
    self.reason = reason
    self.path = path
  }

  /// What a person reads; the place is written as a JSON pointer.
  var description: String {
    let pointer = path.map { name in
      "/"
        + name.flatMap { character in
          switch character {
          case "~": "~0"
          case "/": "~1"
          default: "\(character)"
          }
        }
    }
    return reason.rawValue + (path.isEmpty ? "" : ", at \(pointer.joined())")
  }
}
