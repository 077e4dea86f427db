internal import CCurl
internal import LibC

/// libcurl, opened when it is first needed (`dlopen`), and the functions of it that are used.
///
/// This file and the shim are all that know how it is called; nothing links it, so that commands
/// that stay at home start as fast as if it were not there.
@safe
struct CurlLibrary: @unchecked Sendable {
  typealias Easy = UnsafeMutableRawPointer
  typealias Multi = UnsafeMutableRawPointer
  typealias List = UnsafeMutablePointer<curl_slist>

  let easyInit: @convention(c) () -> Easy?
  let easyCleanup: @convention(c) (Easy?) -> Void
  let easyPause: @convention(c) (Easy?, CInt) -> CURLcode
  let easyErrorText: @convention(c) (CURLcode) -> UnsafePointer<CChar>?
  let easyReceive:
    @convention(c) (Easy?, UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<Int>?) -> CURLcode
  let easySend:
    @convention(c) (Easy?, UnsafeRawPointer?, Int, UnsafeMutablePointer<Int>?) -> CURLcode
  let listAppend: @convention(c) (List?, UnsafePointer<CChar>?) -> List?
  let listFree: @convention(c) (List?) -> Void
  let multiInit: @convention(c) () -> Multi?
  let multiCleanup: @convention(c) (Multi?) -> CURLMcode
  let multiAdd: @convention(c) (Multi?, Easy?) -> CURLMcode
  let multiRemove: @convention(c) (Multi?, Easy?) -> CURLMcode
  let multiPerform: @convention(c) (Multi?, UnsafeMutablePointer<CInt>?) -> CURLMcode
  let multiPoll:
    @convention(c) (
      Multi?, UnsafeMutableRawPointer?, CUnsignedInt, CInt, UnsafeMutablePointer<CInt>?
    )
      -> CURLMcode
  let multiWakeup: @convention(c) (Multi?) -> CURLMcode
  let multiInfoRead:
    @convention(c) (Multi?, UnsafeMutablePointer<CInt>?) -> UnsafeMutablePointer<CURLMsg>?
  let urlInit: @convention(c) () -> OpaquePointer?
  let urlCleanup: @convention(c) (OpaquePointer?) -> Void
  let urlSet:
    @convention(c) (OpaquePointer?, CURLUPart, UnsafePointer<CChar>?, CUnsignedInt) -> CURLUcode
  let urlGet:
    @convention(c) (
      OpaquePointer?, CURLUPart, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, CUnsignedInt
    ) -> CURLUcode
  let free: @convention(c) (UnsafeMutableRawPointer?) -> Void
  // These are variadic: only the shim calls them.
  let easySetOption: UnsafeMutableRawPointer
  let easyGetInfo: UnsafeMutableRawPointer
  let multiSetOption: UnsafeMutableRawPointer

  /// The library, or why there is none.
  static let shared: Result<CurlLibrary, Missing> = Result { () throws(Missing) in try open() }

  /// The library.
  ///
  /// - Throws: ``TransportError`` for the URL if it cannot be used.
  static func forURL(_ url: String) throws(TransportError) -> CurlLibrary {
    switch shared {
    case .success(let library): return library
    case .failure(let missing): throw TransportError(.unavailable(missing.what), url: url)
    }
  }

  /// What is missing: the library, or a function in it.
  struct Missing: Error {
    let what: String
  }

  #if canImport(Darwin)
    static let names = ["/usr/lib/libcurl.4.dylib", "libcurl.4.dylib"]
  #else
    static let names = ["libcurl.so.4"]
  #endif
}

extension CurlLibrary {
  /// Opens the library and looks its functions up; it stays open until the process ends.
  private static func open() throws(Missing) -> CurlLibrary {
    var opened: UnsafeMutableRawPointer?
    for name in names where unsafe opened == nil {
      unsafe opened = dlopen(name, RTLD_NOW | RTLD_LOCAL)
    }
    guard let handle = unsafe opened else {
      throw Missing(what: unsafe dlerror().map { unsafe String(cString: $0) } ?? names[0])
    }
    func function<F>(_ name: String, as type: F.Type) throws(Missing) -> F {
      unsafe unsafeBitCast(try symbol(name, in: handle), to: type)
    }
    typealias GlobalInit = @convention(c) (CLong) -> CURLcode
    let globalInit = try function("curl_global_init", as: GlobalInit.self)
    guard globalInit(CLong(CURL_GLOBAL_DEFAULT)) == CURLE_OK else {
      throw Missing(what: "curl_global_init failed")
    }
    return unsafe CurlLibrary(
      easyInit: try function("curl_easy_init", as: (@convention(c) () -> Easy?).self),
      easyCleanup: try function("curl_easy_cleanup", as: (@convention(c) (Easy?) -> Void).self),
      easyPause: try function(
        "curl_easy_pause", as: (@convention(c) (Easy?, CInt) -> CURLcode).self),
      easyErrorText: try function(
        "curl_easy_strerror", as: (@convention(c) (CURLcode) -> UnsafePointer<CChar>?).self),
      easyReceive: try function(
        "curl_easy_recv",
        as: (@convention(c) (
          Easy?, UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<Int>?
        ) -> CURLcode).self),
      easySend: try function(
        "curl_easy_send",
        as: (@convention(c) (Easy?, UnsafeRawPointer?, Int, UnsafeMutablePointer<Int>?) -> CURLcode)
          .self),
      listAppend: try function(
        "curl_slist_append", as: (@convention(c) (List?, UnsafePointer<CChar>?) -> List?).self),
      listFree: try function("curl_slist_free_all", as: (@convention(c) (List?) -> Void).self),
      multiInit: try function("curl_multi_init", as: (@convention(c) () -> Multi?).self),
      multiCleanup: try function(
        "curl_multi_cleanup", as: (@convention(c) (Multi?) -> CURLMcode).self),
      multiAdd: try function(
        "curl_multi_add_handle", as: (@convention(c) (Multi?, Easy?) -> CURLMcode).self),
      multiRemove: try function(
        "curl_multi_remove_handle", as: (@convention(c) (Multi?, Easy?) -> CURLMcode).self),
      multiPerform: try function(
        "curl_multi_perform",
        as: (@convention(c) (Multi?, UnsafeMutablePointer<CInt>?) -> CURLMcode).self),
      multiPoll: try function(
        "curl_multi_poll",
        as: (@convention(c) (
          Multi?, UnsafeMutableRawPointer?, CUnsignedInt, CInt, UnsafeMutablePointer<CInt>?
        ) -> CURLMcode).self),
      multiWakeup: try function(
        "curl_multi_wakeup", as: (@convention(c) (Multi?) -> CURLMcode).self),
      multiInfoRead: try function(
        "curl_multi_info_read",
        as: (@convention(c) (Multi?, UnsafeMutablePointer<CInt>?) -> UnsafeMutablePointer<CURLMsg>?)
          .self),
      urlInit: try function("curl_url", as: (@convention(c) () -> OpaquePointer?).self),
      urlCleanup: try function(
        "curl_url_cleanup", as: (@convention(c) (OpaquePointer?) -> Void).self),
      urlSet: try function(
        "curl_url_set",
        as: (@convention(c) (OpaquePointer?, CURLUPart, UnsafePointer<CChar>?, CUnsignedInt) ->
          CURLUcode).self),
      urlGet: try function(
        "curl_url_get",
        as: (@convention(c) (
          OpaquePointer?, CURLUPart, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
          CUnsignedInt
        ) -> CURLUcode).self),
      free: try function("curl_free", as: (@convention(c) (UnsafeMutableRawPointer?) -> Void).self),
      easySetOption: try symbol("curl_easy_setopt", in: handle),
      easyGetInfo: try symbol("curl_easy_getinfo", in: handle),
      multiSetOption: try symbol("curl_multi_setopt", in: handle))
  }

  private static func symbol(_ name: String, in handle: UnsafeMutableRawPointer)
    throws(Missing) -> UnsafeMutableRawPointer
  {
    guard let symbol = unsafe dlsym(handle, name) else {
      throw Missing(what: "it has no \(name); 7.80 or newer is needed")
    }
    return unsafe symbol
  }

  /// TLS may write to a connection that is gone; on this thread that is an error from now on, and
  /// not a signal.
  static func ignoreBrokenPipes() {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGPIPE)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
