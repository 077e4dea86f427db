/// Keys with their values.
extension JSONWriter {
  /// Writes a key and a text, or null.
  package mutating func field(_ key: String, _ value: String?) {
    self.key(key)
    if let value { string(value) } else { null() }
  }

  /// Writes a key and a number, or null.
  package mutating func field(_ key: String, _ value: Int?) {
    self.key(key)
    if let value { integer(value) } else { null() }
  }

  /// Writes a key and a number.
  package mutating func field(_ key: String, _ value: UInt64) {
    self.key(key)
    integer(Int128(value))
  }

  /// Writes a key, and whether it is so.
  package mutating func field(_ key: String, _ value: Bool) {
    self.key(key)
    boolean(value)
  }

  /// Writes a key with true, false or null.
  package mutating func field(_ key: String, _ value: Bool?) {
    if let value { return field(key, value) }
    self.key(key)
    null()
  }

  /// Writes a key and texts.
  package mutating func field(_ key: String, _ values: [String]) {
    beginArray(key)
    for value in values { string(value) }
    endArray()
  }

  /// Writes a key and begins its object.
  package mutating func beginObject(_ key: String) {
    self.key(key)
    beginObject()
  }

  /// Writes a key and begins its array.
  package mutating func beginArray(_ key: String) {
    self.key(key)
    beginArray()
  }
}
