/// Keys with their values.
extension JSONWriter {
  /// Writes a key and a text, or null.
  package mutating func field(_ key: String, _ value: String?) {
    self.key(key)
    if let value { string(value) } else { null() }
  }

  /// Writes a key and a number, or null.
  package mutating func field(_ key: String, _ value: (some BinaryInteger)?) {
    self.key(key)
    if let value { integer(value) } else { null() }
  }

  /// Writes a key with true, false or null.
  package mutating func field(_ key: String, _ value: Bool?) {
    self.key(key)
    if let value { boolean(value) } else { null() }
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
