internal import CCurl

/// One libcurl transfer's handle, with its options (`CURL *`).
///
/// Freed with its last reference, by when it must not be in a multi handle.
@safe
final class CurlEasy {
  let handle: CurlLibrary.Easy
  /// The check of the addresses that it connects to.
  let check: AddressCheck
  private let library: CurlLibrary
  private var lists: [CurlLibrary.List]
  private let errorText: UnsafeMutablePointer<CChar>

  /// A handle for a connection that is set up, whose addresses are checked.
  ///
  /// - Throws: ``TransportError`` if there is no memory, or libcurl is too old to ask about
  ///   addresses: then nothing may be sent.
  init(_ library: CurlLibrary, _ check: AddressCheck) throws(TransportError) {
    guard let handle = library.functions.curl_easy_init() else {
      throw check.target.error(.unavailable("no memory"))
    }
    unsafe self.handle = handle
    self.library = library
    self.check = check
    unsafe lists = []
    unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    unsafe set(CURLOPT_ERRORBUFFER, UnsafeRawPointer(errorText))
    configure(check.target)
    let code = unsafe carpack_easy_set_address_check(
      library.functions, handle, CurlCallbacks.openSocket, CurlCallbacks.beforeRequest,
      Unmanaged.passUnretained(check).toOpaque())
    guard code == CURLE_OK else {
      throw check.target.error(.unavailable("7.80 or newer is needed"))
    }
  }

  deinit {
    unsafe library.functions.curl_easy_cleanup(handle)
    unsafe lists.forEach { unsafe library.functions.curl_slist_free_all($0) }
    unsafe errorText.deallocate()
  }

  /// Sets an option that is a number or a switch.
  func set(_ option: CURLoption, _ value: Int) {
    _ = unsafe carpack_easy_setopt_long(library.functions, handle, option, value)
  }

  /// Sets an option that is text, which libcurl copies.
  func set(_ option: CURLoption, _ value: String) {
    _ = unsafe value.withCString {
      unsafe carpack_easy_setopt_pointer(library.functions, handle, option, $0)
    }
  }

  /// Sets an option that is a list of text, kept until the handle is freed.
  func set(_ option: CURLoption, _ values: [String]) {
    var list: CurlLibrary.List?
    for value in values { unsafe list = library.functions.curl_slist_append(list, value) ?? list }
    guard let list = unsafe list else { return }
    unsafe lists.append(list)
    unsafe set(option, UnsafeRawPointer(list))
  }

  /// Sets the body that is sent along: libcurl copies it if it is small, and asks the transfer for
  /// it otherwise.
  func setBody(_ body: RequestBody) {
    _ = unsafe carpack_easy_setopt_offset(
      library.functions, handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(clamping: body.byteCount))
    unsafe body.toCopy?.withUnsafeBytes { unsafe set(CURLOPT_COPYPOSTFIELDS, $0.baseAddress) }
  }

  /// Connects a transfer, which takes the answer and supplies the request's body; it has to live as
  /// long as the handle.
  func setTransfer(_ transfer: CurlTransfer) {
    unsafe carpack_easy_set_transfer(
      library.functions, handle, CurlCallbacks.head, CurlCallbacks.body, CurlCallbacks.read,
      CurlCallbacks.seek, Unmanaged.passUnretained(transfer).toOpaque())
  }

  /// Whether a request went out: everything before it, to the end of the TLS handshake, was done.
  var wasSent: Bool {
    var microseconds: curl_off_t = 0
    _ = unsafe carpack_easy_getinfo_offset(
      library.functions, handle, CURLINFO_PRETRANSFER_TIME_T, &microseconds)
    return microseconds > 0
  }

  /// The connection of a handle that only connects; nil if there is none.
  var activeSocket: CInt? {
    var socket: curl_socket_t = -1
    let code = unsafe carpack_easy_getinfo_socket(library.functions, handle, &socket)
    return code == CURLE_OK && socket >= 0 ? socket : nil
  }

  /// What libcurl says went wrong, in its words.
  func explanation(of code: CURLcode) -> String {
    let text = unsafe String(cString: errorText)
    if !text.isEmpty { return text }
    return unsafe library.functions.curl_easy_strerror(code).map { unsafe String(cString: $0) }
      ?? "error \(code.rawValue)"
  }

  private func set(_ option: CURLoption, _ value: UnsafeRawPointer?) {
    _ = unsafe carpack_easy_setopt_pointer(library.functions, handle, option, value)
  }
}
