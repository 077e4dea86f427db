internal import LibC

/// An address of the internet protocol, version 4 or 6.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
  /// The 128 bits of an IPv6 address, or the 32 of an IPv4 address behind the prefix
  /// `::ffff:0:0/96` (RFC 4291, section 2.5.5.2).
  let bits: UInt128
  /// Whether it was written, or used, as an IPv4 address.
  let isIPv4: Bool

  /// An IPv4 address, its first byte the highest.
  init(v4 bits: UInt32) {
    self.bits = 0xffff << 32 | UInt128(bits)
    isIPv4 = true
  }

  private init(v6 address: in6_addr) {
    bits = UInt128(
      bigEndian: unsafe withUnsafeBytes(of: address) {
        unsafe $0.loadUnaligned(as: UInt128.self)
      })
    isIPv4 = false
  }

  /// Parses an address as it is written (`inet_pton`), without brackets; nil for anything else,
  /// names and addresses with zones included.
  package init?(_ text: String) {
    var v4 = in_addr()
    var v6 = in6_addr()
    if unsafe inet_pton(AF_INET, text, &v4) == 1 {
      self.init(v4: UInt32(bigEndian: v4.s_addr))
    } else if unsafe inet_pton(AF_INET6, text, &v6) == 1 {
      self.init(v6: v6)
    } else {
      return nil
    }
  }

  /// The address of a socket (`struct sockaddr_in` or `sockaddr_in6`); nil for another family.
  init?(family: Int32, socketAddress: UnsafeRawPointer) {
    switch family {
    case AF_INET:
      let address = unsafe socketAddress.loadUnaligned(as: sockaddr_in.self)
      self.init(v4: UInt32(bigEndian: address.sin_addr.s_addr))
    case AF_INET6:
      self.init(v6: unsafe socketAddress.loadUnaligned(as: sockaddr_in6.self).sin6_addr)
    default: return nil
    }
  }

  /// The address as it is written.
  package var description: String {
    if isIPv4 {
      let v4 = UInt32(truncatingIfNeeded: bits)
      return [24, 16, 8, 0].map { "\(v4 >> $0 & 0xff)" }.joined(separator: ".")
    }
    var bytes = bits.bigEndian
    return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) {
      buffer in
      unsafe inet_ntop(AF_INET6, &bytes, buffer.baseAddress, socklen_t(INET6_ADDRSTRLEN)).map {
        unsafe String(cString: $0)
      } ?? "?"
    }
  }
}
