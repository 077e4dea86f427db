/// CRC-32, as gzip has it at its end (RFC 1952, section 8).
///
/// It is here because suites are not optimised, and would take seconds for a few megabytes.
package enum CRC32 {
  private static let table: [UInt32] = (0..<256).map { (index: UInt32) in
    (0..<8).reduce(index) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
  }

  /// The checksum of these bytes.
  package static func of(_ bytes: [UInt8]) -> UInt32 {
    var value = ~UInt32(0)
    for byte in bytes { value = table[Int(UInt8(value & 0xff) ^ byte)] ^ (value >> 8) }
    return ~value
  }
}
