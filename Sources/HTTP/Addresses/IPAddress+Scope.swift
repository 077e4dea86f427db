/// What an address is for, by the registries of special-purpose addresses (RFC 6890 and what has
/// been added to them).
extension IPAddress {
  /// Where an address leads.
  package enum Scope: String, Sendable {
    /// Out into the internet.
    case global
    /// This machine itself.
    case loopback
    /// Nowhere: "this host", before it has an address. Systems take it for loopback.
    case unspecified
    /// A network at home or at work, or its IPv6 equivalent, unique local addresses.
    case privateUse = "private"
    /// The network between a provider and its customers.
    case shared
    /// The next cable.
    case linkLocal = "link-local"
    /// Many receivers.
    case multicast
    /// Examples in texts, measurements, protocols' own use, or nothing yet.
    case reserved
  }

  /// Where this address leads.
  package var scope: Scope {
    // An IPv4 address that is written as an IPv6 one is what is connected to.
    if let v4 = embedded(behind: Self.mapped) { return Self.scope(v4: v4) }
    // Addresses that gateways make IPv4 addresses of are as good as these, but are never this
    // machine.
    for (prefix, shift) in Self.translated where contains(prefix) {
      let v4 = UInt32(truncatingIfNeeded: bits >> shift)
      return Self.scope(v4: v4) == .global ? .global : .reserved
    }
    for (prefix, scope) in Self.v6 where contains(prefix) { return scope }
    // Nothing else has been given out (RFC 4291, section 2.4).
    return bits >> 125 == 0b001 ? .global : .reserved
  }

  /// Some leading bits.
  private struct Prefix {
    let bits: UInt128
    let length: Int

    init(_ high: UInt64, _ low: UInt64 = 0, length: Int) {
      bits = UInt128(high) << 64 | UInt128(low)
      self.length = length
    }
  }

  private func contains(_ prefix: Prefix) -> Bool {
    prefix.length == 0 || (bits ^ prefix.bits) >> (128 - prefix.length) == 0
  }

  private func embedded(behind prefix: Prefix) -> UInt32? {
    contains(prefix) ? UInt32(truncatingIfNeeded: bits) : nil
  }

  /// IPv4-mapped addresses (RFC 4291, section 2.5.5.2).
  private static let mapped = Prefix(0, 0xffff << 32, length: 96)

  /// Prefixes behind which an IPv4 address stands, and how far from the end.
  private static let translated: [(Prefix, Int)] = [
    // NAT64 (RFC 6052).
    (Prefix(0x0064_ff9b_0000_0000, length: 96), 0),
    // 6to4 (RFC 3056).
    (Prefix(0x2002_0000_0000_0000, length: 16), 80),
  ]

  private static let v6: [(Prefix, Scope)] = [
    (Prefix(0, 0, length: 128), .unspecified),
    (Prefix(0, 1, length: 128), .loopback),
    // IPv4-compatible addresses (RFC 4291, deprecated) among what is refused here.
    (Prefix(0, 0, length: 96), .reserved),
    // Protocols' own use, Teredo, ORCHID and benchmarks among it (RFC 2928).
    (Prefix(0x2001_0000_0000_0000, length: 23), .reserved),
    // Documentation (RFC 3849, RFC 9637).
    (Prefix(0x2001_0db8_0000_0000, length: 32), .reserved),
    (Prefix(0x3fff_0000_0000_0000, length: 20), .reserved),
    (Prefix(0xfc00_0000_0000_0000, length: 7), .privateUse),
    (Prefix(0xfe80_0000_0000_0000, length: 10), .linkLocal),
    // Site-local (RFC 3879, deprecated).
    (Prefix(0xfec0_0000_0000_0000, length: 10), .privateUse),
    (Prefix(0xff00_0000_0000_0000, length: 8), .multicast),
  ]

  private static func scope(v4 address: UInt32) -> Scope {
    for (base, length, scope) in v4 where (address ^ base) >> (32 - length) == 0 { return scope }
    return .global
  }

  private static let v4: [(base: UInt32, length: UInt32, Scope)] = [
    // 0.0.0.0 itself, and "this network" (RFC 1122).
    (0x0000_0000, 32, .unspecified),
    (0x0000_0000, 8, .reserved),
    (0x7f00_0000, 8, .loopback),
    // 10/8, 172.16/12, 192.168/16 (RFC 1918).
    (0x0a00_0000, 8, .privateUse),
    (0xac10_0000, 12, .privateUse),
    (0xc0a8_0000, 16, .privateUse),
    // 100.64/10, carriers' address translation (RFC 6598).
    (0x6440_0000, 10, .shared),
    // 169.254/16 (RFC 3927), where clouds keep their secrets, too.
    (0xa9fe_0000, 16, .linkLocal),
    // 192.0.0/24 (RFC 6890).
    (0xc000_0000, 24, .reserved),
    // 192.0.2/24, 198.51.100/24, 203.0.113/24: documentation (RFC 5737).
    (0xc000_0200, 24, .reserved),
    (0xc633_6400, 24, .reserved),
    (0xcb00_7100, 24, .reserved),
    // 192.88.99/24: 6to4 relays (RFC 7526, deprecated).
    (0xc058_6300, 24, .reserved),
    // 198.18/15: benchmarks (RFC 2544).
    (0xc612_0000, 15, .reserved),
    // 224/4 (RFC 5771).
    (0xe000_0000, 4, .multicast),
    // 240/4, 255.255.255.255 among it (RFC 1112).
    (0xf000_0000, 4, .reserved),
  ]
}
