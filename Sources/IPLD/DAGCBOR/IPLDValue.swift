/// A value of the IPLD data model, as DAG-CBOR carries it.
public indirect enum IPLDValue: Hashable, Sendable {
  /// null.
  case null
  /// false or true.
  case boolean(Bool)
  /// An integer, −2^64 … 2^64 − 1.
  case integer(Int128)
  /// A finite float.
  case float(Double)
  /// Text.
  case string(String)
  /// Bytes.
  case bytes([UInt8])
  /// A link to another block.
  case link(CID)
  /// A list.
  case array([IPLDValue])
  /// A map.
  case map(IPLDMap)
}

extension IPLDValue {
  /// The entry of a map with this key; nil for any other value.
  public subscript(key: String) -> IPLDValue? {
    if case .map(let map) = self { map[key] } else { nil }
  }

  /// The text of a string; nil for any other value.
  public var string: String? { if case .string(let text) = self { text } else { nil } }

  /// The integer, if it is one that fits into 64 bits.
  public var integer: Int? {
    if case .integer(let value) = self { Int(exactly: value) } else { nil }
  }

  /// The bytes of a byte string; nil for any other value.
  public var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

  /// The CID of a link; nil for any other value.
  public var link: CID? { if case .link(let cid) = self { cid } else { nil } }

  /// The items of an array; nil for any other value.
  public var array: [IPLDValue]? { if case .array(let items) = self { items } else { nil } }

  /// The map; nil for any other value.
  public var map: IPLDMap? { if case .map(let map) = self { map } else { nil } }
}

/// Equality is that of the encodings: texts are equal if their bytes are.
///
/// Swift's strings are equal already when they look the same, as `é` in one character and in two
/// do.
extension IPLDValue {
  /// Whether both have the same encoding.
  public static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.float(let left), .float(let right)): left.bitPattern == right.bitPattern
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.bytes(let left), .bytes(let right)): left == right
    case (.link(let left), .link(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.map(let left), .map(let right)): left == right
    default: false
    }
  }
}

/// A map from text to values, its entries in DAG-CBOR's order: shorter keys first, keys of one
/// length by their bytes.
public struct IPLDMap: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// One entry.
  public struct Entry: Hashable, Sendable {
    /// The key.
    public let key: String
    /// The CID that it refers to.
    public var value: IPLDValue

    /// An entry of a key and a value.
    package init(key: String, value: IPLDValue) {
      self.key = key
      self.value = value
    }

    /// Whether both have the same encoding.
    public static func == (left: Self, right: Self) -> Bool {
      left.key.utf8.elementsEqual(right.key.utf8) && left.value == right.value
    }
  }

  /// The entries, in order, each key once.
  public private(set) var entries: [Entry] = []

  /// A map without entries.
  public init() {}

  /// A map of these entries; of a key that comes twice, the last counts.
  public init(dictionaryLiteral elements: (String, IPLDValue)...) {
    for (key, value) in elements { self[key] = value }
  }

  /// A map of entries that are known to be in order.
  init(sorted entries: [Entry]) { self.entries = entries }

  /// A map of entries in any order; nil if a key comes twice.
  package init?(unsorted entries: [Entry]) {
    let sorted = entries.sorted { Self.precedes($0.key, $1.key) }
    for (entry, next) in zip(sorted, sorted.dropFirst())
    where !Self.precedes(entry.key, next.key) { return nil }
    self.entries = sorted
  }

  /// The value for a key; setting nil removes the entry.
  public subscript(key: String) -> IPLDValue? {
    get {
      let index = position(of: key)
      return hasKey(key, at: index) ? entries[index].value : nil
    }
    set {
      let index = position(of: key)
      switch (newValue, hasKey(key, at: index)) {
      case (let value?, true): entries[index].value = value
      case (let value?, false): entries.insert(Entry(key: key, value: value), at: index)
      case (nil, true): entries.remove(at: index)
      case (nil, false): break
      }
    }
  }

  /// The keys, in order.
  public var keys: [String] { entries.map(\.key) }

  /// Where `key` stands or would stand.
  private func position(of key: String) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if Self.precedes(entries[middle].key, key) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private func hasKey(_ key: String, at index: Int) -> Bool {
    index < entries.count && entries[index].key.utf8.elementsEqual(key.utf8)
  }

  /// DAG-CBOR's order of keys.
  static func precedes(_ left: String, _ right: String) -> Bool {
    let (left, right) = (left.utf8, right.utf8)
    return left.count == right.count
      ? left.lexicographicallyPrecedes(right) : left.count < right.count
  }
}
