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
    /// The local link (link-local).
    case linkLocal = "link-local"
    /// Many receivers (multicast).
    case multicast
    /// Documentation, benchmarking, protocols' own use, or unassigned.
    case reserved
  }

  /// Where this address leads.
  package var scope: Scope {
    // Addresses that gateways make IPv4 addresses of are as good as these, but are never this
    // machine.
    for (prefix, shift) in Self.translated where begins(with: prefix) {
      let v4 = IPAddress(v4: UInt32(truncatingIfNeeded: bits >> shift))
      return v4.scope == .global ? .global : .reserved
    }
    for (prefix, scope) in Self.special where begins(with: prefix) { return scope }
    // No other part of IPv6 has been assigned (RFC 4291, section 2.4). An IPv4 address that is
    // written as an IPv6 one is what is connected to.
    return begins(with: Self.v4(0, 0)) || bits >> 125 == 0b001 ? .global : .reserved
  }

  /// Some leading bits.
  private typealias Prefix = (bits: UInt128, length: Int)

  private func begins(with prefix: Prefix) -> Bool {
    (bits ^ prefix.bits) >> (128 - prefix.length) == 0
  }

  /// Prefixes behind which an IPv4 address stands, and how far from the end.
  private static let translated: [(Prefix, Int)] = [
    // NAT64 (RFC 6052).
    (v6(0x0064_ff9b, 96), 0),
    // 6to4 (RFC 3056).
    (v6(0x2002_0000, 16), 80),
  ]

  private static let special: [(Prefix, Scope)] = [
    // 0.0.0.0 itself, and "this network" (RFC 1122).
    (v4(0x0000_0000, 32), .unspecified),
    (v4(0x0000_0000, 8), .reserved),
    (v4(0x7f00_0000, 8), .loopback),
    // 10/8, 172.16/12, 192.168/16 (RFC 1918).
    (v4(0x0a00_0000, 8), .privateUse),
    (v4(0xac10_0000, 12), .privateUse),
    (v4(0xc0a8_0000, 16), .privateUse),
    // 100.64/10, carriers' address translation (RFC 6598).
    (v4(0x6440_0000, 10), .shared),
    // 169.254/16 (RFC 3927), where clouds keep their secrets, too.
    (v4(0xa9fe_0000, 16), .linkLocal),
    // 192.0.0/24 (RFC 6890).
    (v4(0xc000_0000, 24), .reserved),
    // 192.0.2/24, 198.51.100/24, 203.0.113/24: documentation (RFC 5737).
    (v4(0xc000_0200, 24), .reserved),
    (v4(0xc633_6400, 24), .reserved),
    (v4(0xcb00_7100, 24), .reserved),
    // 192.88.99/24: 6to4 relays (RFC 7526, deprecated).
    (v4(0xc058_6300, 24), .reserved),
    // 198.18/15: benchmarks (RFC 2544).
    (v4(0xc612_0000, 15), .reserved),
    // 224/4 (RFC 5771).
    (v4(0xe000_0000, 4), .multicast),
    // 240/4, 255.255.255.255 among it (RFC 1112).
    (v4(0xf000_0000, 4), .reserved),
    (v6(0, 128), .unspecified),
    ((1, 128), .loopback),
    // IPv4-compatible addresses (RFC 4291, deprecated) among what is refused here.
    (v6(0, 96), .reserved),
    // Protocols' own use, Teredo, ORCHID and benchmarks among it (RFC 2928).
    (v6(0x2001_0000, 23), .reserved),
    // Documentation (RFC 3849, RFC 9637).
    (v6(0x2001_0db8, 32), .reserved),
    (v6(0x3fff_0000, 20), .reserved),
    (v6(0xfc00_0000, 7), .privateUse),
    (v6(0xfe80_0000, 10), .linkLocal),
    // Site-local (RFC 3879, deprecated).
    (v6(0xfec0_0000, 10), .privateUse),
    (v6(0xff00_0000, 8), .multicast),
  ]

  /// A prefix of IPv4 addresses, which are mapped to IPv6 ones (RFC 4291, section 2.5.5.2).
  private static func v4(_ bits: UInt32, _ length: Int) -> Prefix {
    (IPAddress(v4: bits).bits, 96 + length)
  }

  /// A prefix of IPv6 addresses, given by its first 32 bits; those after are 0.
  private static func v6(_ bits: UInt32, _ length: Int) -> Prefix { (UInt128(bits) << 96, length) }
}
