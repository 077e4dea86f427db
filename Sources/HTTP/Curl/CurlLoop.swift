internal import CCurl
internal import Dispatch
internal import Synchronization

/// The thread on which all transfers happen: it alone touches libcurl's handles (`CURLM *`,
/// `CURL *`).
///
/// Others leave their wishes in an inbox and wake it. It lives until ``close()``.
@safe
final class CurlLoop: @unchecked Sendable {
  /// What others wish.
  enum Wish: Sendable {
    case begin(CurlTransfer, CurlTransfer.Continuation)
    case resume(CurlTransfer)
    case cancel(CurlTransfer)
    case close
  }

  private let library: CurlLibrary
  private let multi: CurlLibrary.Multi
  private let inbox = Mutex<(wishes: [Wish], isClosed: Bool)>(([], false))
  /// How many wishes were ever left.
  ///
  /// The lock alone hands them over; this says so to the thread sanitizer, which does not see what
  /// the lock of the standard library does.
  private let left = Atomic<Int>(0)
  /// The transfers that libcurl works on, by their handles; they belong to the thread.
  private var transfers: [CurlLibrary.Easy: CurlTransfer]
  /// The transfers whose heads have come in this turn; they belong to the thread.
  private var heads: [CurlTransfer] = []

  /// Starts the thread; nil if there is no memory.
  init?(_ library: CurlLibrary) {
    guard let multi = library.functions.curl_multi_init() else { return nil }
    self.library = library
    unsafe self.multi = multi
    unsafe transfers = [:]
    _ = unsafe carpack_multi_setopt_long(
      library.functions, multi, CURLMOPT_MAXCONNECTS, Self.idleConnections)
    // A queue of its own, on which one thing happens that lasts, is a thread of its own.
    DispatchQueue(label: "carpack.network").async { [self] in run() }
  }

  /// How many connections are kept for later requests.
  private static let idleConnections = 64
  /// How long the thread sleeps if nothing happens, in milliseconds.
  private static let longestSleep: CInt = 60_000

  /// Leaves a wish, from any thread.
  func post(_ wish: Wish) {
    let isLate = inbox.withLock { inbox in
      if inbox.isClosed { return true }
      inbox.wishes.append(wish)
      left.add(1, ordering: .releasing)
      // Under the lock, so that the multi handle is there as long as it is woken by.
      _ = unsafe library.functions.curl_multi_wakeup(multi)
      return false
    }
    if isLate, case .begin(_, let continuation) = wish {
      continuation.resume(throwing: CancellationError())
    }
  }

  /// Ends all transfers and the thread.
  func close() { post(.close) }

  private func run() {
    CurlLibrary.ignoreBrokenPipes()
    while true {
      let wishes = inbox.withLock { inbox in
        _ = left.load(ordering: .acquiring)
        defer { inbox.wishes.removeAll() }
        return inbox.wishes
      }
      for wish in wishes {
        if case .close = wish { return end() }
        fulfil(wish)
      }
      perform()
      _ = unsafe library.functions.curl_multi_poll(multi, nil, 0, Self.longestSleep, nil)
    }
  }

  private func fulfil(_ wish: Wish) {
    switch wish {
    case .begin(let transfer, let continuation):
      guard let easy = transfer.begin(library, continuation) else { return }
      unsafe transfers[easy.handle] = transfer
      let code = unsafe library.functions.curl_multi_add_handle(multi, easy.handle)
      if code != CURLM_OK { remove(transfer, CURLE_FAILED_INIT) }
    case .resume(let transfer):
      guard let handle = unsafe handle(of: transfer) else { return }
      let code = unsafe library.functions.curl_easy_pause(handle, CURLPAUSE_CONT)
      if code != CURLE_OK { remove(transfer, code) }
    case .cancel(let transfer):
      guard let handle = unsafe handle(of: transfer) else { return }
      unsafe takeOut(handle)
      transfer.finish(throwing: CancellationError())
    case .close: break
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
      // The message dies with the handle's leaving.
      let code = unsafe carpack_message_result(message)
      remove(transfer, code)
    }
  }

  /// Has a head handed on when the turn is over: what has come of the body by then goes along, and
  /// a waiting task is woken once.
  func hasHead(_ transfer: CurlTransfer) { heads.append(transfer) }

  private func remove(_ transfer: CurlTransfer, _ code: CURLcode) {
    guard let handle = unsafe handle(of: transfer) else { return }
    unsafe takeOut(handle)
    transfer.finish(code)
  }

  private func takeOut(_ handle: CurlLibrary.Easy) {
    _ = unsafe library.functions.curl_multi_remove_handle(multi, handle)
    unsafe transfers[handle] = nil
  }

  /// The handle of a transfer that is under way.
  private func handle(of transfer: CurlTransfer) -> CurlLibrary.Easy? {
    guard let easy = transfer.easy, unsafe transfers[easy.handle] === transfer else { return nil }
    return unsafe easy.handle
  }

  private func end() {
    let late = inbox.withLock { inbox in
      inbox.isClosed = true
      defer { inbox.wishes.removeAll() }
      return inbox.wishes
    }
    for case .begin(_, let continuation) in late {
      continuation.resume(throwing: CancellationError())
    }
    for transfer in unsafe Array(transfers.values) {
      if let handle = unsafe handle(of: transfer) { unsafe takeOut(handle) }
      transfer.finish(throwing: CancellationError())
    }
    _ = unsafe library.functions.curl_multi_cleanup(multi)
  }
}
