internal import CCurl
internal import Synchronization

/// A connection to a server, TLS included, over which bytes go both ways; libcurl makes it
/// (`CURLOPT_CONNECT_ONLY`).
///
/// Invariants:
/// 1. Only ``connect()`` and ``wait(toSend:until:)`` wait, and ``cancel()`` ends both at once.
/// 2. All but ``cancel()`` is called by one thread at a time.
/// 3. The handle stays in its multi handle: libcurl closes the connection of one that is taken out.
@safe
final class StreamConnection: @unchecked Sendable {
  private let library: CurlLibrary
  private let multi: CurlLibrary.Multi
  private let easy: CurlEasy
  private let target: ConnectionTarget
  private let cancelled = Atomic<Bool>(false)
  private var descriptor: curl_socket_t = -1
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)

  /// How long the thread sleeps if nothing happens, in milliseconds.
  private static let longestSleep = 60_000.0

  /// A connection that is not made yet.
  ///
  /// - Throws: ``TransportError`` if libcurl cannot be used.
  init(_ target: ConnectionTarget) throws(TransportError) {
    self.target = target
    library = try CurlLibrary.forURL("\(target.url)")
    easy = try CurlEasy(library, AddressCheck(target))
    easy.set(CURLOPT_CONNECT_ONLY, 1)
    guard let multi = library.functions.curl_multi_init() else {
      throw target.error(.unavailable("no memory"))
    }
    unsafe self.multi = multi
    // Without memory it is not taken, and then there is nothing that connects.
    _ = unsafe library.functions.curl_multi_add_handle(multi, easy.handle)
  }

  deinit {
    CurlLibrary.ignoreBrokenPipes()
    _ = unsafe library.functions.curl_multi_remove_handle(multi, easy.handle)
    _ = unsafe library.functions.curl_multi_cleanup(multi)
  }

  /// Ends what waits now, and everything that is asked of it later, by `CancellationError`; from
  /// any thread.
  func cancel() {
    cancelled.store(true, ordering: .releasing)
    _ = unsafe library.functions.curl_multi_wakeup(multi)
  }

  /// Connects.
  ///
  /// - Throws: ``TransportError`` if no connection comes about in the time that the target's
  ///   settings give it; `CancellationError`.
  func connect() throws {
    CurlLibrary.ignoreBrokenPipes()
    var running: CInt = 1
    while true {
      try checkCancellation()
      let code = unsafe library.functions.curl_multi_perform(multi, &running)
      guard code == CURLM_OK else { throw target.error(.unavailable("error \(code.rawValue)")) }
      if running == 0 { break }
      _ = unsafe library.functions.curl_multi_poll(multi, nil, 0, CInt(Self.longestSleep), nil)
    }
    var rest: CInt = 0
    let message = unsafe library.functions.curl_multi_info_read(multi, &rest)
    let code = unsafe message.map { unsafe carpack_message_result($0) } ?? CURLE_FAILED_INIT
    guard code == CURLE_OK, let socket = easy.activeSocket else {
      throw target.error(easy.reason(code, wasSent: false, awaitsHead: true))
    }
    descriptor = socket
  }

  /// What has arrived; nil if nothing has.
  ///
  /// - Throws: ``TransportError`` if the connection has ended.
  func receive() throws(TransportError) -> ArraySlice<UInt8>? {
    var count = 0
    let code = unsafe library.functions.curl_easy_recv(easy.handle, &buffer, buffer.count, &count)
    switch code {
    case CURLE_OK where count > 0: return buffer[..<count]
    case CURLE_OK: throw target.error(.cutOff("the server ended it"))
    case CURLE_AGAIN: return nil
    default: throw target.error(.cutOff(Excerpt.of(easy.explanation(of: code))))
    }
  }

  /// Sends as much as there is room for.
  ///
  /// - Parameters:
  ///   - bytes: what is to be sent; TLS wants to find what it could not send in the same place.
  ///   - start: from where on.
  /// - Throws: ``TransportError`` if the connection has ended.
  /// - Returns: How many bytes were sent.
  func send(_ bytes: [UInt8], from start: Int) throws(TransportError) -> Int {
    CurlLibrary.ignoreBrokenPipes()
    var count = 0
    let code = unsafe bytes.span.extracting(start...).withUnsafeBytes { rest in
      unsafe library.functions.curl_easy_send(easy.handle, rest.baseAddress, rest.count, &count)
    }
    guard code == CURLE_OK || code == CURLE_AGAIN else {
      throw target.error(.cutOff(Excerpt.of(easy.explanation(of: code))))
    }
    return count
  }

  /// Waits until bytes have arrived or, if wanted, bytes can be sent.
  ///
  /// - Throws: `CancellationError`; ``TransportError`` if it cannot be waited for.
  func wait(toSend: Bool, until deadline: ContinuousClock.Instant) throws {
    try checkCancellation()
    let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
    var place = curl_waitfd(
      fd: descriptor, events: CShort(CURL_WAIT_POLLIN | (toSend ? CURL_WAIT_POLLOUT : 0)),
      revents: 0)
    // Rounded up, so that it does not wake before the deadline.
    let code = unsafe library.functions.curl_multi_poll(
      multi, &place, 1, CInt(max(0, min(left, Self.longestSleep)).rounded(.up)), nil)
    guard code == CURLM_OK else { throw target.error(.unavailable("error \(code.rawValue)")) }
    try checkCancellation()
  }

  /// Throws `CancellationError` if it was cancelled.
  func checkCancellation() throws(CancellationError) {
    if cancelled.load(ordering: .acquiring) { throw CancellationError() }
  }
}
