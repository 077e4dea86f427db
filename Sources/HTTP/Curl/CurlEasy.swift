internal import CCurl

/// One libcurl transfer's handle, with its options (`CURL *`).
///
/// Freed with its last reference, by when it must not be in a multi handle.
@safe
final class CurlEasy {
  let handle: CurlLibrary.Easy
  private let library: CurlLibrary
  private var lists: [CurlLibrary.List]
  private let errorText: UnsafeMutablePointer<CChar>

  /// A handle with libcurl's defaults; nil if there is no memory.
  init?(_ library: CurlLibrary) {
    guard let handle = library.functions.curl_easy_init() else { return nil }
    unsafe self.handle = handle
    self.library = library
    unsafe lists = []
    unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    unsafe set(CURLOPT_ERRORBUFFER, UnsafeRawPointer(errorText))
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

  /// Sets the body that is sent along, which libcurl copies.
  func setBody(_ body: [UInt8]) {
    _ = unsafe carpack_easy_setopt_offset(
      library.functions, handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
    unsafe body.withUnsafeBytes { unsafe set(CURLOPT_COPYPOSTFIELDS, $0.baseAddress) }
  }

  /// Has a body sent along that is asked for piece by piece; false if libcurl is too old for that.
  func setBody(
    byteCount: UInt64, read: curl_read_callback, seek: curl_seek_callback,
    context: UnsafeMutableRawPointer
  ) -> Bool {
    let library = library.functions
    let codes = unsafe [
      carpack_easy_setopt_offset(
        library, handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(clamping: byteCount)),
      carpack_easy_setopt_read(library, handle, read),
      carpack_easy_setopt_seek(library, handle, seek),
    ]
    for option in [CURLOPT_READDATA, CURLOPT_SEEKDATA] { unsafe set(option, context) }
    return codes.allSatisfy { $0 == CURLE_OK }
  }

  /// Sets the functions that take an answer, and what they are called with.
  func setReception(
    head: curl_write_callback, body: curl_write_callback, context: UnsafeMutableRawPointer
  ) {
    let library = library.functions
    _ = unsafe carpack_easy_setopt_write(library, handle, CURLOPT_HEADERFUNCTION, head)
    _ = unsafe carpack_easy_setopt_write(library, handle, CURLOPT_WRITEFUNCTION, body)
    for option in [CURLOPT_HEADERDATA, CURLOPT_WRITEDATA] { unsafe set(option, context) }
  }

  /// Sets the functions that are asked about addresses, and what they are called with; false if
  /// libcurl is too old to ask.
  func setAddressCheck(
    socket: curl_opensocket_callback, beforeRequest: curl_prereq_callback,
    context: UnsafeMutableRawPointer
  ) -> Bool {
    let library = library.functions
    let codes = unsafe [
      carpack_easy_setopt_opensocket(library, handle, socket),
      carpack_easy_setopt_prereq(library, handle, beforeRequest),
    ]
    for option in [CURLOPT_OPENSOCKETDATA, CURLOPT_PREREQDATA] { unsafe set(option, context) }
    return codes.allSatisfy { $0 == CURLE_OK }
  }

  /// Whether a request went out: everything before it, to the end of the TLS handshake, was done.
  var wasSent: Bool {
    var microseconds: curl_off_t = 0
    _ = unsafe carpack_easy_getinfo_offset(
      library.functions, handle, CURLINFO_PRETRANSFER_TIME_T, &microseconds)
    return microseconds > 0
  }

  /// The connection that was made, of a handle that makes one and nothing else; nil if there is
  /// none.
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
