internal import ATProtocol

/// Keys with their values, for the objects that verbs print.
extension JSONWriter {
  mutating func field(_ key: String, _ value: String?) {
    self.key(key)
    if let value { string(value) } else { null() }
  }

  mutating func field(_ key: String, _ value: Int?) {
    self.key(key)
    if let value { integer(value) } else { null() }
  }

  mutating func field(_ key: String, _ value: UInt64) {
    self.key(key)
    integer(Int128(value))
  }

  mutating func field(_ key: String, _ values: [String]) {
    self.key(key)
    beginArray()
    for value in values { string(value) }
    endArray()
  }
}
