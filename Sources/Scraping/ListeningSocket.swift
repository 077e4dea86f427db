internal import Files
internal import LibC

/// A TCP socket that listens, neither blocks nor is inherited, and is closed by its owner.
struct ListeningSocket {
  let descriptor: CInt
  /// The port it listens on.
  let port: UInt16

  /// How many clients may wait in the system's queue.
  private static let backlog: CInt = 64

  /// Listens: `getaddrinfo` of what is an address already, `socket`, `bind`, `listen`.
  ///
  /// - Parameters:
  ///   - address: an IPv4 or IPv6 address; `::` is every address of both.
  ///   - port: the port; 0 for any.
  /// - Throws: `BackupError`.
  init(address: String, port: UInt16) throws {
    func failure(_ code: CInt) -> BackupError {
      BackupError.system("listen on \(address), port \(port)", code)
    }
    var hints = unsafe addrinfo()
    unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV
    #if canImport(Glibc)
      unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    #else
      unsafe hints.ai_socktype = SOCK_STREAM
    #endif
    var found: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(address, "\(port)", &hints, &found) == 0,
      let place = unsafe found?.pointee
    else { throw failure(EINVAL) }
    defer { unsafe freeaddrinfo(found) }
    descriptor = unsafe socket(place.ai_family, place.ai_socktype, place.ai_protocol)
    guard descriptor >= 0 else { throw failure(errno) }
    Self.prepare(descriptor)
    Self.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    if unsafe place.ai_family == AF_INET6 {
      Self.set(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, 0)
    }
    guard unsafe bind(descriptor, place.ai_addr, place.ai_addrlen) == 0,
      listen(descriptor, Self.backlog) == 0, let port = Self.port(of: descriptor)
    else {
      let code = errno
      close(descriptor)
      throw failure(code)
    }
    self.port = port
  }

  /// The next client; nil, and `errno`, if there is none.
  func accept() -> CInt? {
    let client = LibC.accept(descriptor, nil, nil)
    guard client >= 0 else { return nil }
    Self.prepare(client)
    return client
  }

  private static func prepare(_ descriptor: CInt) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    #if canImport(Darwin)
      set(descriptor, SOL_SOCKET, SO_NOSIGPIPE, 1)
    #endif
  }

  private static func set(_ descriptor: CInt, _ level: CInt, _ option: CInt, _ value: CInt) {
    var value = value
    _ = unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
  }

  /// The port that the system has given: `getsockname`.
  private static func port(of descriptor: CInt) -> UInt16? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let isKnown = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isKnown else { return nil }
    // The port lies at the same place in the addresses of both families.
    return unsafe withUnsafeBytes(of: storage) {
      unsafe UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
  }
}
