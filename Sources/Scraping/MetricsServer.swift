internal import Dispatch
internal import Files
internal import HTTP
internal import LibC
internal import Synchronization

/// Responds to a scraper's `GET` with a text, or with 404 where there is none.
///
/// Each client is served as soon as it has asked, however many others are connected.
///
/// It is for a scraper in the same network, and reads no more of a request than its first line.
///
/// 1. All descriptors but one belong to its one thread, which closes them when it ends.
/// 2. That one is an end of a pipe, which ``stop()`` closes, once; the thread has the other end,
///    and ends by it.
package final class MetricsServer: Sendable {
  /// The status and the text for a path; nil if there is none.
  package typealias Answer = @Sendable (_ path: String) -> (status: String, text: String)?

  /// The port it listens on.
  package let port: UInt16
  /// Where it listens, as it is written in a URL: an IPv6 address in brackets, and the port.
  package let authority: String

  private let isStopped = Atomic<Bool>(false)
  private let lifeline: CInt
  private let thread = DispatchGroup()

  /// How many clients are connected at a time; for one more the oldest is released.
  private static let maximumClients = 64
  /// How long it waits for descriptors when there are none left, in microseconds.
  private static let pause: UInt32 = 100_000

  /// Starts listening.
  ///
  /// - Parameters:
  ///   - address: an IPv4 or IPv6 address; `::` is every address of both.
  ///   - port: the port; 0 for any.
  ///   - text: makes the answer.
  /// - Throws: `BackupError` if it cannot listen there.
  package init(address: String, port: UInt16, text: @escaping Answer) throws {
    let listener = try ListeningSocket(address: address, port: port)
    var ends: [CInt] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else {
      let code = errno
      close(listener.descriptor)
      throw BackupError.system("make a pipe", code)
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    self.port = listener.port
    authority = "\(address.contains(":") ? "[\(address)]" : address):\(listener.port)"
    lifeline = ends[1]
    let end = ends[0]
    DispatchQueue(label: "metrics").async(group: thread) {
      Self.serve(listener, until: end, text)
    }
  }

  /// Listens at an address and a port as a URL has them, `127.0.0.1:9464` or `[::]:9464`; nil for
  /// another text.
  ///
  /// - Throws: `BackupError` if it cannot listen there.
  package convenience init?(at place: String, text: @escaping Answer) throws {
    guard let colon = place.lastIndex(of: ":"), let port = UInt16(place[colon...].dropFirst()),
      let address = Self.address(in: place[..<colon])
    else { return nil }
    try self.init(address: address, port: port, text: text)
  }

  /// The address in what a URL has before the colon and the port, an IPv6 address in brackets; nil
  /// if it is not one.
  static func address(in host: some StringProtocol) -> String? {
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    let text = isBracketed ? String(host.dropFirst().dropLast()) : String(host)
    return IPAddress(text) != nil && isBracketed == text.contains(":") ? text : nil
  }

  /// Stops listening; everything is closed when it returns.
  package func stop() {
    guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
    close(lifeline)
    // It waits for nothing but this.
    thread.wait()
  }

  private static func serve(
    _ listener: ListeningSocket, until end: CInt, _ text: Answer
  ) {
    // The oldest first.
    var clients: [MetricsClient] = []
    defer {
      for descriptor in clients.map(\.descriptor) + [listener.descriptor, end] { close(descriptor) }
    }
    while true {
      var places = [
        pollfd(fd: end, events: CShort(POLLIN), revents: 0),
        pollfd(fd: listener.descriptor, events: CShort(POLLIN), revents: 0),
      ]
      places += clients.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
      let next = clients.first.map { ContinuousClock.now.duration(to: $0.end) / .milliseconds(1) }
      _ = unsafe poll(&places, nfds_t(places.count), next.map { CInt(max(0, $0)) + 1 } ?? -1)
      if places[0].revents != 0 { return }
      for index in clients.indices where places[index + 2].revents != 0 { clients[index].go(text) }
      clients.removeAll { client in
        let isOver = client.isOver || client.end <= .now
        if isOver { close(client.descriptor) }
        return isOver
      }
      if places[1].revents != 0 { take(from: listener, &clients) }
    }
  }

  private static func take(from listener: ListeningSocket, _ clients: inout [MetricsClient]) {
    if let descriptor = listener.accept() {
      clients.append(MetricsClient(descriptor))
      guard clients.count > maximumClients else { return }
    } else {
      // Anything else is the client's: it went away again.
      guard errno == EMFILE || errno == ENFILE else { return }
      guard !clients.isEmpty else {
        usleep(pause)
        return
      }
    }
    close(clients.removeFirst().descriptor)
  }
}
