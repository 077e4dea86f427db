import LibC

/// Servers of other projects that some tests need, if they are installed and running.
enum Peers {
  /// A PDS with one account, `bob.test`.
  static let pds = "http://127.0.0.1:2590"
  /// The directory that has this account's DID document, and under `/.well-known/atproto-did` its
  /// DID.
  static let directory = "http://127.0.0.1:2591"

  /// A proxy in front of the PDS, which does something else to answers under each path.
  static let faults = "http://127.0.0.1:3600"

  /// Whether PDS and directory answer.
  static let arePresent = isListening(2590) && isListening(2591)

  /// Whether the proxy does, too.
  static let haveFaults = arePresent && isListening(3600)

  /// What a skipped test says.
  static let absence = "no PDS of another project listens on ports 2590 and 2591 of this machine"

  /// What a skipped test of the proxy says.
  static let absenceOfFaults = "\(absence), or no proxy on port 3600"

  private static func isListening(_ port: UInt16) -> Bool {
    #if canImport(Glibc)
      let kind = CInt(SOCK_STREAM.rawValue)
    #else
      let kind = SOCK_STREAM
    #endif
    let descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return unsafe withUnsafePointer(to: &address) { address in
      unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}
