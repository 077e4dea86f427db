internal import CCurl
internal import Dispatch
internal import Synchronization

/// The thread on which all transfers happen: it alone touches libcurl's handles (`CURLM *`,
/// `CURL *`).
///
/// Others leave commands in an inbox and wake it. It lives until ``close()``.
@safe
final class CurlLoop: @unchecked Sendable {
  /// A command from another thread.
  enum Wish: Sendable {
    case begin(CurlTransfer, CurlTransfer.Continuation)
    case resume(CurlTransfer)
    case cancel(CurlTransfer)
  }

  private let library: CurlLibrary
  private let multi: CurlLibrary.Multi
  private let inbox = Mutex<(wishes: [Wish], isClosed: Bool)>(([], false))
  /// How many commands were ever left.
  ///
  /// The lock alone hands them over; this says so to the thread sanitizer, which does not see what
  /// the lock of the standard library does.
  private let left = Atomic<Int>(0)
  /// The transfers that libcurl works on, by their handles; they belong to the thread.
  private var transfers: [CurlLibrary.Easy: CurlTransfer]
  /// The transfers whose heads have come in this turn; they belong to the thread.
  private var heads: [CurlTransfer] = []

  /// Starts the thread.
  ///
  /// - Throws: ``TransportError`` if there is no memory.
  init(_ library: CurlLibrary) throws(TransportError) {
    guard let multi = library.functions.curl_multi_init() else {
      throw TransportError(.unavailable("no memory"), url: "libcurl")
    }
    self.library = library
    unsafe self.multi = multi
    unsafe transfers = [:]
    _ = unsafe carpack_multi_setopt_long(
      library.functions, multi, CURLMOPT_MAXCONNECTS, Self.idleConnections)
    // A separate queue with one long-running task is a separate thread.
    DispatchQueue(label: "carpack.network").async { [self] in run() }
  }

  /// How many connections are kept for later requests.
  private static let idleConnections = 64
  /// How long the thread sleeps if nothing happens, in milliseconds.
  private static let longestSleep: CInt = 60_000

  /// Leaves a command, from any thread.
  func post(_ wish: Wish) {
    let isLate = inbox.withLock { inbox in
      if inbox.isClosed { return true }
      inbox.wishes.append(wish)
      left.add(1, ordering: .releasing)
      // Under the lock, so that the multi handle exists while it is used to wake the loop.
      _ = unsafe library.functions.curl_multi_wakeup(multi)
      return false
    }
    if isLate, case .begin(_, let continuation) = wish {
      continuation.resume(throwing: CancellationError())
    }
  }

  /// Ends all transfers and the thread; later commands have no effect.
  func close() {
    inbox.withLock { inbox in
      inbox.isClosed = true
      left.add(1, ordering: .releasing)
      _ = unsafe library.functions.curl_multi_wakeup(multi)
    }
  }

  private func run() {
    CurlLibrary.ignoreBrokenPipes()
    while true {
      let (wishes, isClosed) = inbox.withLock { inbox in
        _ = left.load(ordering: .acquiring)
        defer { inbox.wishes.removeAll() }
        return inbox
      }
      wishes.forEach(fulfil)
      if isClosed { break }
      perform()
      _ = unsafe library.functions.curl_multi_poll(multi, nil, 0, Self.longestSleep, nil)
    }
    for transfer in unsafe Array(transfers.values) {
      transfer.finish(throwing: CancellationError())
    }
    _ = unsafe library.functions.curl_multi_cleanup(multi)
  }

  private func fulfil(_ wish: Wish) {
    switch wish {
    case .begin(let transfer, let continuation):
      guard let easy = transfer.begin(library, continuation) else { return }
      unsafe transfers[easy.handle] = transfer
      let code = unsafe library.functions.curl_multi_add_handle(multi, easy.handle)
      if code != CURLM_OK { transfer.finish(CURLE_FAILED_INIT) }
    case .resume(let transfer):
      guard let easy = transfer.easy else { return }
      let code = unsafe library.functions.curl_easy_pause(easy.handle, CURLPAUSE_CONT)
      if code != CURLE_OK { transfer.finish(code) }
    case .cancel(let transfer):
      if transfer.easy != nil { transfer.finish(throwing: CancellationError()) }
    }
  }

  private func perform() {
    var running: CInt = 0
    _ = unsafe library.functions.curl_multi_perform(multi, &running)
    defer {
      for transfer in heads { transfer.handOnHead() }
      heads.removeAll(keepingCapacity: true)
    }
    var rest: CInt = 0
    while let message = unsafe library.functions.curl_multi_info_read(multi, &rest) {
      guard unsafe message.pointee.msg == CURLMSG_DONE,
        let handle = unsafe message.pointee.easy_handle,
        let transfer = unsafe transfers[handle]
      else { continue }
      transfer.finish(unsafe carpack_message_result(message))
    }
  }

  /// Passes on a head at the end of the turn: with it goes the part of the body that has arrived by
  /// then, so that a waiting task is woken once.
  func hasHead(_ transfer: CurlTransfer) { heads.append(transfer) }

  /// Removes the handle of a transfer that ends from libcurl's multi handle.
  func takeOut(_ easy: CurlEasy) {
    _ = unsafe library.functions.curl_multi_remove_handle(multi, easy.handle)
    unsafe transfers[easy.handle] = nil
  }
}
