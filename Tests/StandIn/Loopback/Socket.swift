import LibC

/// A TCP socket on the loopback interface, and the system calls that are made on it.
///
/// It is a number and owns nothing: its creator closes it.
struct Socket: Hashable, Sendable {
  /// The result of waiting for bytes.
  enum Arrival: Equatable {
    /// This many were appended.
    case bytes(Int)
    /// The other side has sent all that it had to send.
    case end
    /// The connection is gone, and bytes that had been sent to the other side may not have been
    /// read.
    case broken
  }

  /// A system call that failed, and the `errno` of it.
  struct Failure: Error, CustomStringConvertible {
    let call: String
    let code: CInt
    var description: String { unsafe "\(call): \(String(cString: strerror(code)))" }
  }

  let descriptor: CInt

  #if canImport(Darwin) || canImport(Musl)
    private static let stream = SOCK_STREAM
  #else
    private static let stream = CInt(SOCK_STREAM.rawValue)
  #endif

  /// A socket that listens on 127.0.0.1: `socket`, `bind`, `listen`.
  ///
  /// - Parameters:
  ///   - port: the port; 0 for any that is free.
  ///   - backlog: how many connections may wait to be accepted: a client's whole crowd at once.
  static func listening(port: UInt16, backlog: CInt = 512) throws(Failure) -> Socket {
    let socket = try bound(to: port)
    guard listen(socket.descriptor, backlog) == 0 else {
      let failure = Failure(call: "listen", code: errno)
      socket.close()
      throw failure
    }
    return socket
  }

  /// A socket that keeps a port of 127.0.0.1 from others that take any, and does not listen; nil if
  /// another has the port.
  static func reserving(port: UInt16) -> Socket? { try? bound(to: port) }

  private static func bound(to port: UInt16) throws(Failure) -> Socket {
    let socket = Socket(descriptor: socket(AF_INET, stream, 0))
    guard socket.descriptor >= 0 else { throw Failure(call: "socket", code: errno) }
    // A server that was killed leaves its port in TIME_WAIT, and is started again on the same one.
    socket.set(SOL_SOCKET, SO_REUSEADDR)
    var address = loopback(port)
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(socket.descriptor, $0, length)
      }
    }
    guard bound == 0 else {
      let failure = Failure(call: "bind", code: errno)
      socket.close()
      throw failure
    }
    return socket
  }

  /// A socket that receives datagrams at an address of this machine: `socket`, `bind`.
  static func receivingDatagrams(at host: UInt32, port: UInt16) throws(Failure) -> Socket {
    #if canImport(Darwin) || canImport(Musl)
      let kind = SOCK_DGRAM
    #else
      let kind = CInt(SOCK_DGRAM.rawValue)
    #endif
    let socket = Socket(descriptor: socket(AF_INET, kind, 0))
    var address = loopback(port)
    address.sin_addr.s_addr = host.bigEndian
    let bound = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard bound == 0 else {
      let failure = Failure(call: "bind", code: errno)
      socket.close()
      throw failure
    }
    return socket
  }

  /// Waits for a datagram and answers it, if there is an answer: `poll`, `recvfrom`, `sendto`.
  func answerDatagram(within milliseconds: CInt, _ answer: ([UInt8]) -> [UInt8]?) {
    var entry = pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0)
    guard unsafe poll(&entry, 1, milliseconds) > 0 else { return }
    var (bytes, address) = ([UInt8](repeating: 0, count: 4096), sockaddr_in())
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withUnsafeMutablePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        let count = unsafe recvfrom(descriptor, &bytes, bytes.count, 0, address, &length)
        guard count > 0, let reply = answer(Array(bytes[..<count])) else { return }
        _ = unsafe sendto(descriptor, reply, reply.count, 0, address, length)
      }
    }
  }

  /// The port that a listening socket was given: `getsockname`.
  var port: UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withUnsafeMutablePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe getsockname(descriptor, $0, &length)
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  /// The next connection: `accept`; nil if it went away again, or if the socket is of no more use.
  func accept() -> Socket? {
    let accepted = LibC.accept(descriptor, nil, nil)
    guard accepted >= 0 else { return nil }
    let socket = Socket(descriptor: accepted)
    // Answers are written whole, so holding back a small one would only make it late.
    socket.set(CInt(IPPROTO_TCP), TCP_NODELAY)
    #if canImport(Darwin)
      socket.set(SOL_SOCKET, SO_NOSIGPIPE)
    #endif
    return socket
  }

  /// Connects to a listening socket and lets go at once, so that its `accept` returns.
  static func knock(port: UInt16) {
    // Where there is nobody to open, there is nobody to be woken.
    do { try connecting(to: port).close() } catch {}
  }

  /// A socket that is connected to a port of 127.0.0.1: `socket`, `connect`.
  static func connecting(to port: UInt16) throws(Failure) -> Socket {
    let socket = Socket(descriptor: socket(AF_INET, stream, 0))
    guard socket.descriptor >= 0 else { throw Failure(call: "socket", code: errno) }
    var address = loopback(port)
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let connected = unsafe withUnsafePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(socket.descriptor, $0, length)
      }
    }
    guard connected == 0 else {
      let failure = Failure(call: "connect", code: errno)
      socket.close()
      throw failure
    }
    return socket
  }

  /// A socket that is connected to a port of 127.0.0.1, if that comes about in this many
  /// milliseconds: `fcntl`, `connect`, `poll`.
  static func connecting(to port: UInt16, within milliseconds: CInt) -> Socket? {
    let socket = Socket(descriptor: socket(AF_INET, stream, 0))
    _ = fcntl(socket.descriptor, F_SETFL, O_NONBLOCK)
    var address = loopback(port)
    _ = unsafe withUnsafeMutablePointer(to: &address) {
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(socket.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    var entry = pollfd(fd: socket.descriptor, events: CShort(POLLOUT), revents: 0)
    if unsafe poll(&entry, 1, milliseconds) == 1, entry.revents == CShort(POLLOUT) { return socket }
    socket.close()
    return nil
  }

  /// Waits for bytes and appends them: `recv`.
  func receive(into bytes: inout [UInt8]) -> Arrival {
    var count = 0
    bytes.append(addingCapacity: 16 << 10) { output in
      unsafe output.withUnsafeMutableBufferPointer { buffer, initialized in
        repeat {
          let free = buffer.count - initialized
          guard let start = buffer.baseAddress else { return }
          count = unsafe recv(descriptor, start + initialized, free, 0)
        } while count < 0 && errno == EINTR
        if count > 0 { initialized += count }
      }
    }
    if count > 0 { return .bytes(count) }
    return count == 0 ? .end : .broken
  }

  /// Sends all of the bytes: `send`; returns how many the system took before the connection was
  /// gone.
  func send(_ bytes: Span<UInt8>) -> Int {
    unsafe bytes.withUnsafeBytes { buffer in
      #if canImport(Darwin)
        let flags: CInt = 0
      #else
        let flags = CInt(MSG_NOSIGNAL)
      #endif
      var sent = 0
      while sent < buffer.count {
        guard let start = buffer.baseAddress else { break }
        let count = unsafe LibC.send(descriptor, start + sent, buffer.count - sent, flags)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { break }
        sent += count
      }
      return sent
    }
  }

  /// Whether the other side has gone, after waiting so long for it: `poll`.
  func hasHungUp(within milliseconds: CInt) -> Bool {
    #if os(Linux)
      // The last of them is POLLRDHUP, which Glibc shows to GNU sources only.
      let events = CShort(POLLHUP | POLLERR | 0x2000)
    #else
      let events = CShort(POLLHUP | POLLERR)
    #endif
    var entry = pollfd(fd: descriptor, events: events, revents: 0)
    return unsafe poll(&entry, 1, milliseconds) > 0 && entry.revents & events != 0
  }

  /// Says that nothing more will be sent, and waits until the other side has ended its direction,
  /// too: `shutdown`.
  ///
  /// - Returns: whether it did, and so has read everything.
  func finish(within seconds: CInt) -> Bool {
    _ = LibC.shutdown(descriptor, CInt(SHUT_WR))
    guard hasHungUp(within: seconds * 1000) else { return false }
    var rest: [UInt8] = []
    return receive(into: &rest) == .end
  }

  /// Ends both directions, so that waiting threads return: `shutdown`.
  func shutdown() {
    _ = LibC.shutdown(descriptor, CInt(SHUT_RDWR))
  }

  /// Has `close` break the connection with a reset, and throw away what has not been sent:
  /// `SO_LINGER`.
  func makeCloseReset() {
    var value = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(
      descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
  }

  /// Gives the number back: `close`.
  func close() {
    _ = LibC.close(descriptor)
  }

  private func set(_ level: CInt, _ option: CInt) {
    var value: CInt = 1
    _ = unsafe setsockopt(
      descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }
}
