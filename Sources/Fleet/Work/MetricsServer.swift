internal import Dispatch
internal import Files
internal import LibC
internal import Synchronization

/// Answers `GET /metrics` with counters, and everything else with 404, one client after the other.
///
/// It is for a scraper in the same network, and reads no more of a request than its first line.
package final class MetricsServer: Sendable {
  private let descriptor: CInt
  private let isClosed = Atomic<Bool>(false)
  /// The port it listens on.
  package let port: UInt16

  /// How much of a request is read, in bytes.
  private static let longestRequest = 4096
  /// How long a client may say nothing, and how long its request may take, in seconds.
  private static let patience = 2

  /// Listens, from now on.
  ///
  /// - Parameters:
  ///   - address: an IPv4 address.
  ///   - port: the port; 0 for any.
  ///   - text: makes what is answered.
  /// - Throws: `BackupError` if it cannot listen there.
  package init(address: String, port: UInt16, text: @escaping @Sendable () -> String) throws {
    #if canImport(Glibc)
      let stream = CInt(SOCK_STREAM.rawValue)
    #else
      let stream = SOCK_STREAM
    #endif
    let descriptor = socket(AF_INET, stream, 0)
    var place = sockaddr_in()
    place.sin_family = sa_family_t(AF_INET)
    place.sin_port = port.bigEndian
    guard descriptor >= 0, unsafe inet_pton(AF_INET, address, &place.sin_addr) == 1 else {
      throw BackupError.system("listen on \(address):\(port)", descriptor < 0 ? errno : EINVAL)
    }
    var yes: CInt = 1
    unsafe setsockopt(
      descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = unsafe withUnsafeMutablePointer(to: &place) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe bind(descriptor, address, length) == 0 && listen(descriptor, 16) == 0
          && getsockname(descriptor, address, &length) == 0
      }
    }
    guard isBound else {
      let code = errno
      close(descriptor)
      throw BackupError.system("listen on \(address):\(port)", code)
    }
    self.descriptor = descriptor
    self.port = UInt16(bigEndian: place.sin_port)
    DispatchQueue(label: "metrics").async { [self] in serve(text) }
  }

  private func serve(_ text: () -> String) {
    while !isClosed.load(ordering: .acquiring) {
      let client = accept(descriptor, nil, nil)
      guard client >= 0 else {
        // Most often because it was closed; if not, not at once again.
        if errno != EINTR { usleep(100_000) }
        continue
      }
      answer(client, text)
      close(client)
    }
  }

  private func answer(_ client: CInt, _ text: () -> String) {
    var patience = timeval(tv_sec: Self.patience, tv_usec: 0)
    let length = socklen_t(MemoryLayout<timeval>.size)
    unsafe setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, length)
    unsafe setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, length)
    var request: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1024)
    // To its end, so that the client is not cut off before it has read the answer.
    let end = ContinuousClock.now + .seconds(Self.patience)
    while .now < end, request.count < Self.longestRequest,
      !request.suffix(4).elementsEqual("\r\n\r\n".utf8)
    {
      let count = unsafe recv(client, &buffer, buffer.count, 0)
      guard count > 0 else { return }
      request += buffer[..<count]
    }
    let line = request.prefix { $0 != UInt8(ascii: "\r") }
    let isAsked = ["GET /metrics HTTP/1.1", "GET /metrics HTTP/1.0"].contains {
      line.elementsEqual($0.utf8)
    }
    let body = isAsked ? text() : "there is /metrics here, and nothing else\n"
    let head = """
      HTTP/1.1 \(isAsked ? "200 OK" : "404 Not Found")\r
      Content-Type: text/plain; version=0.0.4; charset=utf-8\r
      Content-Length: \(body.utf8.count)\r
      Connection: close\r
      \r

      """
    #if canImport(Darwin)
      let noSignal: CInt = 0
    #else
      let noSignal = CInt(MSG_NOSIGNAL)
    #endif
    var rest = Array((head + body).utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { bytes in
        unsafe send(client, bytes.baseAddress, bytes.count, noSignal)
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Listens no longer.
  package func stop() {
    guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
    shutdown(descriptor, CInt(SHUT_RDWR))
    close(descriptor)
  }
}
