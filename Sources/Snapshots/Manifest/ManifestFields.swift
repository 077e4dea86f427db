internal import ATProtocol
internal import Archive
internal import IPLD

/// Reads, writes or prints the fields of a manifest, of which a type describes each once.
///
/// ```swift
/// mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
///   try fields.field("did", &did)
///   try fields.optional("pds", &pds)
/// }
/// ```
/// 1. A figure is 0…2^48, so that a few can be added whatever a forged manifest says.
/// 2. Fields without a description are kept: reading leaves them in ``map``, and writing adds to
///    it.
/// 3. JSON has the described fields in the order of their descriptions.
struct ManifestFields {
  private enum Mode { case reading, writing, printing }

  private let mode: Mode
  /// What has not been read yet, or what has been written so far.
  private(set) var map: IPLDMap
  private var json = JSONWriter()

  /// The largest figure that is read (FORMAT 8).
  static let maximumFigure = 1 << 48

  /// Reads the fields of a map.
  init(reading map: IPLDMap) { (mode, self.map) = (.reading, map) }

  /// Adds fields to those of a map.
  init(writing map: IPLDMap = [:]) { (mode, self.map) = (.writing, map) }

  /// Prints fields as keys and values into an object that has begun.
  static func print(
    to json: inout JSONWriter, _ body: (inout ManifestFields) throws(SnapshotError) -> Void
  ) {
    var fields = ManifestFields(printing: json)
    // Only reading fails.
    try? body(&fields)
    json = fields.json
  }

  private init(printing json: JSONWriter) { (mode, map, self.json) = (.printing, [:], json) }

  /// Whether values come from a map.
  var isReading: Bool { mode == .reading }

  /// A required field.
  mutating func field<Value: FieldValue>(
    _ name: String, _ value: inout Value, isPrinted: Bool = true
  ) throws(SnapshotError) {
    var found: Value? = value
    if isReading, map[name] == nil { throw .malformedField(name) }
    try optional(name, &found, isPrinted: isPrinted)
    if let found { value = found }
  }

  /// A field that has a usual value when it is absent.
  ///
  /// - Parameter isOmitted: whether it is left out then.
  mutating func field<Value: FieldValue & Equatable>(
    _ name: String, _ value: inout Value, orElse usual: Value, isOmitted: Bool = true,
    isPrinted: Bool = true
  ) throws(SnapshotError) {
    var found: Value? = isOmitted && value == usual ? nil : value
    try optional(name, &found, isPrinted: isPrinted)
    value = found ?? usual
  }

  /// A field that may be absent.
  ///
  /// - Parameters:
  ///   - key: its name in JSON, if that is another.
  ///   - isNull: whether it is null in the manifest in place of absent.
  ///   - printsNull: whether it is null in JSON in place of absent.
  mutating func optional<Value: FieldValue>(
    _ name: String, _ value: inout Value?, key: String? = nil, isNull: Bool = false,
    printsNull: Bool = false, isPrinted: Bool = true
  ) throws(SnapshotError) {
    switch mode {
    case .reading:
      let field = take(name)
      guard let field, !isNull || field != .null else { return value = nil }
      value = Value.read(field)
      if value == nil { throw .malformedField(name) }
    case .writing: map[name] = value?.field ?? (isNull ? .null : nil)
    case .printing where isPrinted && (value != nil || printsNull):
      json.key(key ?? name)
      Self.print(value?.field ?? .null, &json)
    case .printing: break
    }
  }

  /// A field that follows from others, and is not read.
  mutating func derived(
    _ name: String, _ value: some FieldValue, isStored: Bool = true, isPrinted: Bool = true
  ) throws(SnapshotError) {
    if mode == .printing {
      var value: Optional = value
      try optional(name, &value, isPrinted: isPrinted)
    } else if isStored {
      map[name] = isReading ? nil : value.field
    }
  }

  /// Links, each once; absent if there are none.
  mutating func links(_ name: String, _ links: inout [CID], isDistinct: Bool = true)
    throws(SnapshotError)
  {
    switch mode {
    case .reading:
      let items = try list(name)
      links = items.compactMap(\.link)
      guard links.count == items.count, !isDistinct || Set(links).count == links.count else {
        throw .malformedField(name)
      }
    case .writing: map[name] = links.isEmpty ? nil : .array(links.map { .link($0) })
    case .printing: break
    }
  }

  /// Words, those of a later version among them; absent if there are none.
  mutating func words<Word: RawRepresentable<String> & Hashable>(
    _ name: String, _ words: inout Set<Word>
  ) throws(SnapshotError) {
    switch mode {
    case .reading:
      let items = try list(name)
      words = Set(items.compactMap { $0.string.flatMap(Word.init(rawValue:)) })
      let rest = items.filter { $0.string.flatMap(Word.init(rawValue:)) == nil }
      map[name] = rest.isEmpty ? nil : .array(rest)
    case .writing:
      let further = map[name]?.array ?? []
      let known = words.map(\.rawValue).sorted().map { IPLDValue.string($0) }
      map[name] = further.isEmpty && known.isEmpty ? nil : .array(known + further)
    case .printing where !words.isEmpty: json.field(name, words.map(\.rawValue).sorted())
    case .printing: break
    }
  }

  /// A map of fields.
  ///
  /// - Parameter isAbsent: whether it is left out.
  mutating func group<Value>(
    _ name: String, _ value: inout Value, isAbsent: Bool = false, isPrinted: Bool = true,
    _ body: (inout Value, inout Self) throws(SnapshotError) -> Void
  ) throws(SnapshotError) {
    if mode == .printing {
      guard isPrinted, !isAbsent else { return }
      json.beginObject(name)
      try body(&value, &self)
      json.endObject()
      return
    }
    let outer = map
    if isReading, let field = outer[name], field.map == nil { throw .malformedField(name) }
    map = outer[name]?.map ?? [:]
    if isReading || !isAbsent { try body(&value, &self) }
    let inner = map
    map = outer
    map[name] = inner.entries.isEmpty && (isReading || isAbsent) ? nil : .map(inner)
  }

  /// A map of fields that may be absent.
  mutating func group<Value>(
    _ name: String, _ value: inout Value?, orElse usual: Value,
    _ body: (inout Value, inout Self) throws(SnapshotError) -> Void
  ) throws(SnapshotError) {
    let isAbsent = isReading ? map[name] == nil : value == nil
    var found = value ?? usual
    try group(name, &found, isAbsent: isAbsent) { value, fields throws(SnapshotError) in
      if !isAbsent { try body(&value, &fields) }
    }
    value = isAbsent ? nil : found
  }

  /// Forgets fields without a description that were read.
  mutating func dropRest() { if isReading { map = [:] } }

  private mutating func take(_ name: String) -> IPLDValue? {
    defer { map[name] = nil }
    return map[name]
  }

  private mutating func list(_ name: String) throws(SnapshotError) -> [IPLDValue] {
    guard let field = take(name) else { return [] }
    guard let items = field.array else { throw .malformedField(name) }
    return items
  }

  private static func print(_ value: IPLDValue, _ json: inout JSONWriter) {
    switch value {
    case .string(let text): json.string(text)
    case .integer(let number): json.integer(number)
    case .boolean(let flag): json.boolean(flag)
    case .link(let cid): json.string(cid)
    case .bytes(let bytes) where bytes.count == 32: json.string("\(SHA256Digest(bytes.span))")
    default: json.null()
    }
  }
}

// MARK: Values

/// A value of a field.
protocol FieldValue {
  /// The value of a field; nil if that does not have the type and the bounds that it must have.
  static func read(_ field: IPLDValue) -> Self?
  /// The field.
  var field: IPLDValue { get }
}

extension IPLDValue {
  /// A figure; nil for anything but an integer from 0 to 2^48.
  var figure: Int? { integer.flatMap { 0...ManifestFields.maximumFigure ~= $0 ? $0 : nil } }
}

extension Int: FieldValue {
  static func read(_ field: IPLDValue) -> Int? { field.figure }
  var field: IPLDValue { .integer(Int128(self)) }
}

extension UInt64: FieldValue {
  static func read(_ field: IPLDValue) -> UInt64? { field.figure.map { UInt64($0) } }
  var field: IPLDValue { .integer(Int128(self)) }
}

extension Bool: FieldValue {
  static func read(_ field: IPLDValue) -> Bool? {
    if case .boolean(let flag) = field { flag } else { nil }
  }
  var field: IPLDValue { .boolean(self) }
}

extension CID: FieldValue {
  static func read(_ field: IPLDValue) -> CID? { field.link }
  var field: IPLDValue { .link(self) }
}

extension [UInt8]: FieldValue {
  static func read(_ field: IPLDValue) -> [UInt8]? { field.bytes }
  var field: IPLDValue { .bytes(self) }
}

extension SHA256Digest: FieldValue {
  static func read(_ field: IPLDValue) -> SHA256Digest? {
    field.bytes.flatMap { $0.count == 32 ? SHA256Digest($0.span) : nil }
  }
  var field: IPLDValue { .bytes(bytes) }
}

extension String: FieldValue {
  static func read(_ field: IPLDValue) -> String? { field.string }
  var field: IPLDValue { .string(self) }
}

extension BlobLedger.Reason: FieldValue {
  static func read(_ field: IPLDValue) -> Self? { field.string.map(Self.init(rawValue:)) }
  var field: IPLDValue { .string(rawValue) }
}

extension FieldValue where Self: Identifier {
  static func read(_ field: IPLDValue) -> Self? { field.string.flatMap { try? Self($0) } }
  var field: IPLDValue { .string(text) }
}

extension ATURI: FieldValue {}
extension DID: FieldValue {}
extension Handle: FieldValue {}
extension TID: FieldValue {}
